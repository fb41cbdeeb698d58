// Reads the shards that nodes have published for this edge. One list; a shard is fetched only if its etag is new.
import { createHash } from 'node:crypto';
import { compareBytewise } from '../cluster/canonical.ts';
import { describeError } from '../errors.ts';
import { nodeIdPattern } from '../ids.ts';
import type { Store, StoredEntry } from '../store/store.ts';
import type { EdgeDocument, StoredShard } from './documents.ts';
import { parseShard, type Rejection } from './shard.ts';

export type GatheredShards = {
  listing: string;
  /** In byte order of their nodes. */
  shards: readonly StoredShard[];
  /** The store has no shard at all any more, and these are the last ones. */
  gone: boolean;
};

/** At most this many requests are in flight. */
const parallel = 16;

/**
 * Throws UnavailableError where the store cannot be listed or a shard not be fetched: half the routes are no routes. A node
 * that has nothing to route writes an empty shard, so that no shard at all is what a store looks like that is not mounted.
 */
export async function gatherShards(
  store: Store,
  prefix: string,
  memory: Pick<EdgeDocument, 'listing' | 'shards'>,
): Promise<GatheredShards> {
  const entries = (await store.list(prefix)).flatMap((entry) => {
    const node = nodeOf(entry.key.slice(prefix.length));
    return node === undefined ? [] : [{ ...entry, node }];
  });
  const listing = hashListing(entries);
  const known = sortShards(Object.values(memory.shards));
  const gone = entries.length === 0 && known.length > 0;
  if (gone || listing === memory.listing) return { listing, shards: known, gone };
  const shards: StoredShard[] = [];
  for (let start = 0; start < entries.length; start += parallel) {
    const batch = entries.slice(start, start + parallel);
    const read = await Promise.all(batch.map((entry) => readShard(store, entry, memory.shards[entry.node])));
    shards.push(...read.filter((shard) => shard !== undefined));
  }
  return { listing, shards: sortShards(shards), gone };
}

/** The node whose shard lies under this name; undefined for anything else, which is nobody's shard. */
function nodeOf(name: string): string | undefined {
  const node = /^([^/]+)\.json$/.exec(name)?.[1];
  return node !== undefined && nodeIdPattern.test(node) ? node : undefined;
}

function hashListing(entries: readonly StoredEntry[]): string {
  const lines = entries.map(({ key, etag }) => `${key}@${etag}\n`).sort(compareBytewise);
  return createHash('sha256').update(lines.join('')).digest('hex');
}

/** Undefined where it has been removed since the list. One that cannot be read leaves what was read of it last. */
async function readShard(
  store: Store,
  { key, etag, node }: StoredEntry & { node: string },
  last: StoredShard | undefined,
): Promise<StoredShard | undefined> {
  if (last?.etag === etag) return last;
  const stored = await store.get(key);
  if (stored === undefined) return undefined;
  try {
    return { ...parseShard(stored.text, node), etag: stored.etag };
  } catch (error) {
    const kept = last === undefined ? '' : ': its last good routes stay';
    const rejection: Rejection = { node, subject: 'shard', reason: `${describeError(error)}${kept}` };
    const { backends = [], host } = last ?? {};
    // Without a fingerprint: its node must not take it for acknowledged.
    return {
      node,
      fingerprint: '',
      ...(host && { host }),
      backends,
      rejected: [rejection],
      etag: stored.etag,
    };
  }
}

function sortShards(shards: readonly StoredShard[]): StoredShard[] {
  return shards.toSorted((left, right) => compareBytewise(left.node, right.node));
}
