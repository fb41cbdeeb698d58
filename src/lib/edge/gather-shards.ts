// Reads the shards that nodes have published for this edge. One list; a shard is fetched only if its etag is new, and none is
// even looked at while the list is the same.
import { createHash } from 'node:crypto';
import { compareBytewise } from '../cluster/canonical.ts';
import { describeError, InputError, UnavailableError } from '../errors.ts';
import { nodeIdPattern } from '../ids.ts';
import type { Store, StoredEntry } from '../store/store.ts';
import { version } from '../version.ts';
import type { EdgeDocument, EdgeShardsDocument } from './documents.ts';
import { type CheckedShard, parseShard, type Rejection } from './shard.ts';

export type ShardList = {
  listing: string;
  etags: Readonly<Record<string, string>>;
  /** Of what the shards say, as one hash. */
  contents: string;
  /** The store has no shard at all any more, and these are the last ones. */
  gone: boolean;
  /** Read when they are first asked for. */
  read(): Promise<ReadShards>;
};

export type ReadShards = {
  /** In byte order of their nodes. */
  shards: readonly CheckedShard[];
  /** They are remembered as they are: nothing of them has to be written down. */
  isRemembered: boolean;
};

type ShardMemory = {
  known: Pick<EdgeDocument, 'listing' | 'etags' | 'contents'>;
  /** Shards as last read; undefined where they are lost. */
  readShards(): Promise<EdgeShardsDocument['shards'] | undefined>;
};

type Listed = StoredEntry & { node: string };

/** `isCurrent`: they are those that the etags stand for. Others are good for what cannot be read any more. */
type Recalled = { shards: readonly CheckedShard[]; isCurrent: boolean };

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
  const listing = hashLines([version, ...entries.map(({ key, etag }) => `${key}@${etag}`)]);
  if (listing === known.listing) {
    const { etags, contents } = known;
    return { listing, etags, contents, gone: false, read: () => readAgain(store, entries, memory) };
  }
  const recalled = await recall(memory);
  if (entries.length === 0 && Object.keys(known.etags).length + recalled.shards.length > 0) {
    const { etags, contents } = known;
    return { listing: known.listing, etags, contents, gone: true, read: async () => requireLast(recalled) };
  }
  const { isCurrent } = recalled;
  const isUnchanged = ({ node, etag }: Listed): boolean => isCurrent && known.etags[node] === etag;
  const shards = await fetchShards(store, entries, { last: recalled.shards, isUnchanged });
  const etags = Object.fromEntries(entries.map(({ node, etag }) => [node, etag]));
  const contents = describeContents(shards, etags);
  return {
    // One that has gone since the list may come back as it was: then the list is the same, and nobody would fetch it.
    listing: shards.length === entries.length ? listing : '',
    etags,
    contents,
    gone: false,
    read: async () => ({ shards, isRemembered: isCurrent && contents === known.contents }),
  };
}

/** Shards of a list that is the same; they are fetched only where they are lost. */
async function readAgain(store: Store, entries: readonly Listed[], memory: ShardMemory): Promise<ReadShards> {
  const { shards, isCurrent } = await recall(memory);
  if (isCurrent) return { shards, isRemembered: true };
  const fetched = await fetchShards(store, entries, { last: shards, isUnchanged: () => false });
  return { shards: fetched, isRemembered: false };
}

/** Shards and etags are in two files: a kill between their writes, or a previous copy of one, parts the two. */
async function recall({ known, readShards }: ShardMemory): Promise<Recalled> {
  const shards = sortShards(Object.values((await readShards()) ?? {}));
  return { shards, isCurrent: describeContents(shards, known.etags) === known.contents };
}

function requireLast({ shards }: Recalled): ReadShards {
  if (shards.length > 0) return { shards, isRemembered: true };
  throw new UnavailableError(
    'cannot tell the routes: the store has no shard any more, and the last ones are lost',
  );
}

/**
 * A shard that could not be read has no fingerprint: it counts as another one each time it is written. What another version
 * of reeve has made of a shard is not what this one would.
 */
function describeContents(shards: readonly CheckedShard[], etags: ShardList['etags']): string {
  const lines = shards.map(({ node, fingerprint }) => `${node} ${fingerprint || etags[node]}`);
  return hashLines([version, ...lines]);
}

/** The node whose shard lies under this name; undefined for anything else, which is nobody's shard. */
function nodeOf(name: string): string | undefined {
  const node = /^([^/]+)\.json$/.exec(name)?.[1];
  return node !== undefined && nodeIdPattern.test(node) ? node : undefined;
}

function hashLines(lines: readonly string[]): string {
  return createHash('sha256').update(lines.toSorted(compareBytewise).join('\n')).digest('hex');
}

type Known = {
  /** What a shard that cannot be read leaves in force. */
  last: readonly CheckedShard[];
  /** The last one is what a fetch would give. */
  isUnchanged(entry: Listed): boolean;
};

async function fetchShards(
  store: Store,
  entries: readonly Listed[],
  { last, isUnchanged }: Known,
): Promise<readonly CheckedShard[]> {
  const known = new Map(last.map((shard) => [shard.node, shard]));
  const shards: CheckedShard[] = [];
  for (let start = 0; start < entries.length; start += parallel) {
    const batch = entries.slice(start, start + parallel).map(async (entry) => {
      const before = known.get(entry.node);
      return before !== undefined && isUnchanged(entry) ? before : await fetchShard(store, entry, before);
    });
    shards.push(...(await Promise.all(batch)).filter((shard) => shard !== undefined));
  }
  return sortShards(shards);
}

/** Undefined where it has been removed since the list. One that cannot be read leaves what was read of it last. */
async function fetchShard(
  store: Store,
  { key, node }: Listed,
  last: CheckedShard | undefined,
): Promise<CheckedShard | undefined> {
  try {
    const stored = await store.get(key);
    return stored === undefined ? undefined : parseShard(stored.text, node);
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof InputError)) throw error;
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
