// Reads the shards that nodes have published for this edge. One list; a shard is fetched only if its etag is new, and none is
// even looked at while the list is the same.
import { createHash } from 'node:crypto';
import { compareBytewise } from '../cluster/canonical.ts';
import { describeError } from '../errors.ts';
import { nodeIdPattern } from '../ids.ts';
import type { Store, StoredEntry } from '../store/store.ts';
import type { EdgeDocument, EdgeShardsDocument } from './documents.ts';
import { type CheckedShard, parseShard, type Rejection } from './shard.ts';

export type ShardList = {
  listing: string;
  etags: Readonly<Record<string, string>>;
  /** Of what the shards say, as one hash. */
  contents: string;
  /** The store has no shard at all any more, and these are the last ones. */
  gone: boolean;
  /** In byte order of their nodes. Read when they are first asked for. */
  read(): Promise<readonly CheckedShard[]>;
};

type ShardMemory = {
  known: Pick<EdgeDocument, 'listing' | 'etags' | 'contents'>;
  /** Shards as last read; undefined where they are lost. */
  readShards(): Promise<EdgeShardsDocument['shards'] | undefined>;
};

type Listed = StoredEntry & { node: string };

/** At most this many requests are in flight. */
const parallel = 16;

/**
 * Throws UnavailableError where the store cannot be listed or a shard not be fetched: half the routes are no routes. A node
 * that has nothing to route writes an empty shard, so that no shard at all is what a store looks like that is not mounted.
 */
export async function listShards(store: Store, prefix: string, memory: ShardMemory): Promise<ShardList> {
  const { known } = memory;
  const entries = (await store.list(prefix)).flatMap((entry): Listed[] => {
    const node = nodeOf(entry.key.slice(prefix.length));
    return node === undefined ? [] : [{ ...entry, node }];
  });
  const listing = hashLines(entries.map(({ key, etag }) => `${key}@${etag}`));
  const gone = entries.length === 0 && Object.keys(known.etags).length > 0;
  if (gone || listing === known.listing) {
    const { etags, contents } = known;
    const read = async (): Promise<readonly CheckedShard[]> => {
      const shards = await memory.readShards();
      return shards === undefined && !gone
        ? await fetchShards(store, entries, {})
        : sortShards(Object.values(shards ?? {}));
    };
    return { listing: known.listing, etags, contents, gone, read };
  }
  const last = (await memory.readShards()) ?? {};
  const unchanged = (entry: Listed): CheckedShard | undefined =>
    known.etags[entry.node] === entry.etag ? last[entry.node] : undefined;
  const kept = Object.fromEntries(entries.map((entry) => [entry.node, unchanged(entry)]));
  const shards = await fetchShards(store, entries, kept, last);
  const etags = Object.fromEntries(entries.map(({ node, etag }) => [node, etag]));
  return { listing, etags, contents: describeContents(shards, etags), gone, read: async () => shards };
}

/** A shard that could not be read has no fingerprint: it counts as another one each time it is written. */
function describeContents(shards: readonly CheckedShard[], etags: ShardList['etags']): string {
  return hashLines(shards.map(({ node, fingerprint }) => `${node} ${fingerprint || etags[node]}`));
}

/** The node whose shard lies under this name; undefined for anything else, which is nobody's shard. */
function nodeOf(name: string): string | undefined {
  const node = /^([^/]+)\.json$/.exec(name)?.[1];
  return node !== undefined && nodeIdPattern.test(node) ? node : undefined;
}

function hashLines(lines: readonly string[]): string {
  return createHash('sha256').update(lines.toSorted(compareBytewise).join('\n')).digest('hex');
}

/** `kept` needs no fetching; `last` is what a shard that cannot be read leaves in force. */
async function fetchShards(
  store: Store,
  entries: readonly Listed[],
  kept: Readonly<Record<string, CheckedShard | undefined>>,
  last: EdgeShardsDocument['shards'] = {},
): Promise<readonly CheckedShard[]> {
  const shards: CheckedShard[] = [];
  for (let start = 0; start < entries.length; start += parallel) {
    const batch = entries.slice(start, start + parallel);
    const read = await Promise.all(
      batch.map((entry) => kept[entry.node] ?? fetchShard(store, entry, last[entry.node])),
    );
    shards.push(...read.filter((shard) => shard !== undefined));
  }
  return sortShards(shards);
}

/** Undefined where it has been removed since the list. One that cannot be read leaves what was read of it last. */
async function fetchShard(
  store: Store,
  { key, node }: Listed,
  last: CheckedShard | undefined,
): Promise<CheckedShard | undefined> {
  const stored = await store.get(key);
  if (stored === undefined) return undefined;
  try {
    return parseShard(stored.text, node);
  } catch (error) {
    const kept = last === undefined ? '' : ': its last good routes stay';
    const rejection: Rejection = { node, subject: 'shard', reason: `${describeError(error)}${kept}` };
    const { backends = [], host } = last ?? {};
    // Without a fingerprint: its node must not take it for acknowledged.
    return { node, fingerprint: '', ...(host && { host }), backends, rejected: [rejection] };
  }
}

function sortShards(shards: readonly CheckedShard[]): CheckedShard[] {
  return shards.toSorted((left, right) => compareBytewise(left.node, right.node));
}
