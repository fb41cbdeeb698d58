// What a service has of backups in its store: the list, and the documents of its sets, put together. Retention, `backup
// list`, restores and the freshness that status tells all start from here.
import { mapBounded } from '../bounded.ts';
import type { Store, StoredEntry } from '../store/store.ts';
import type { EvidenceLevel } from './evidence.ts';
import { type Manifest, type Parsed, parseEvidence, parseManifest, parsePruned } from './manifest.ts';
import { type BackupKey, dumpKey, parseBackupKey, setKey } from './names.ts';

/** One dump of one database, be it in a set or not. */
export type Dump = {
  database: string;
  key: string;
  stamp: string;
  /** The scheduled fire. */
  at: Date;
  sizeBytes: number;
  /** `uploaded`: nothing says that it was ever whole, as launch-pad's dumps and those of a run that was killed. */
  level: EvidenceLevel;
  /** Why it is broken. */
  fault?: string;
  /** When it was written, by the store's clock; absent where it is not there. */
  updatedAt?: Date;
};

export type BackupSet = {
  stamp: string;
  at: Date;
  /** Undefined where there is none (yet), or it cannot be understood: `fault` says so then. */
  manifest: Manifest | undefined;
  fault?: string;
  /** Databases whose dumps of this set retention has removed. */
  pruned: readonly string[];
  /** Every object of the set itself; the dumps lie elsewhere. */
  keys: readonly string[];
  /** When the newest of them was written, by the store's clock. */
  updatedAt: Date;
};

export type Inventory = {
  /** Oldest first, by database in byte order. */
  dumps: readonly Dump[];
  /** Oldest first. */
  sets: readonly BackupSet[];
  /** Below the prefix, and no backup's name: left alone. */
  unrecognised: readonly string[];
  /** When the newest of all these objects was written, by the store's clock; absent where there is none. */
  updatedAt?: Date;
};

/** Requests under way at once. */
const parallel = 8;

/** `prefix`: the service's own, ending in a slash. Throws what the store throws. */
export async function readInventory(store: Store, prefix: string): Promise<Inventory> {
  const entries = await store.list(prefix);
  const found = entries.map((entry) => ({ entry, named: parseBackupKey(prefix, entry.key) }));
  const sets = await mapBounded(groupSets(found), parallel, (group) => readSet(store, prefix, group));
  const about = describeDumps(sets);
  const dumps = found.flatMap(({ entry, named }) =>
    named?.kind === 'dump' ? [toDump(entry, named, about)] : [],
  );
  const present = new Set(entries.map(({ key }) => key));
  return {
    dumps: [...dumps, ...findMissing(sets, present)].sort(compareDumps),
    sets: sets.map(({ set }) => set),
    unrecognised: found.filter(({ named }) => named === undefined).map(({ entry }) => entry.key),
    ...(entries.length === 0 ? {} : { updatedAt: newestOf(entries) }),
  };
}

function newestOf(entries: readonly StoredEntry[]): Date {
  return new Date(Math.max(...entries.map(({ updatedAt }) => updatedAt.getTime())));
}

type Found = { entry: StoredEntry; named: BackupKey | undefined };
type Group = { stamp: string; at: Date; entries: StoredEntry[] };
type ReadSet = { set: BackupSet; levels: ReadonlyMap<string, { level: EvidenceLevel; error?: string }> };

function groupSets(found: readonly Found[]): Group[] {
  const groups = new Map<string, Group>();
  for (const { entry, named } of found) {
    if (named?.kind !== 'set') continue;
    const { stamp, at } = named;
    const group = groups.get(stamp) ?? { stamp, at, entries: [] };
    group.entries.push(entry);
    groups.set(stamp, group);
  }
  return [...groups.values()].sort((a, b) => a.at.getTime() - b.at.getTime());
}

async function readSet(store: Store, prefix: string, { stamp, at, entries }: Group): Promise<ReadSet> {
  const keys = entries.map(({ key }) => key);
  const read = async <Value>(file: 'manifest' | 'evidence' | 'pruned', parse: (source: string) => Value) => {
    const key = setKey(prefix, stamp, file);
    const stored = keys.includes(key) ? await store.get(key) : undefined;
    return stored && parse(stored.text);
  };
  const manifest = await read('manifest', (source) => requireOwn(parseManifest(source), { prefix, stamp }));
  const evidence = await read('evidence', parseEvidence);
  const note = await read('pruned', parsePruned);
  const pruned = note !== undefined && 'value' in note ? note.value.databases : [];
  const set = { stamp, at, pruned, keys, updatedAt: newestOf(entries) };
  if (manifest === undefined || 'fault' in manifest) {
    return { set: { ...set, manifest: undefined, ...manifest }, levels: new Map() };
  }
  const levels = new Map<string, { level: EvidenceLevel; error?: string }>(
    manifest.value.databases.map(({ database }) => [database, { level: 'readable' }]),
  );
  // What is not there to be read, or not to be understood, takes nothing from what the dump itself has shown.
  const proven = evidence !== undefined && 'value' in evidence ? evidence.value.databases : [];
  for (const { database, level, error } of proven) {
    if (levels.has(database)) levels.set(database, { level, ...(error === undefined ? {} : { error }) });
  }
  return { set: { ...set, manifest: manifest.value }, levels };
}

/** What a set says of objects that are not its own is nobody's word, and they are neither read nor removed on it. */
function requireOwn(
  parsed: Parsed<Manifest>,
  { prefix, stamp }: { prefix: string; stamp: string },
): Parsed<Manifest> {
  if ('fault' in parsed) return parsed;
  const { databases, globals } = parsed.value;
  const others = databases.filter(({ key, database }) => key !== dumpKey(prefix, database, stamp));
  const isOwn = globals === undefined || globals.key === setKey(prefix, stamp, 'globals');
  const [key] = [...others.map((dump) => dump.key), ...(isOwn ? [] : [globals.key])];
  return key === undefined ? parsed : { fault: `it names ${JSON.stringify(key)}, which is not its own` };
}

type About = { sizeBytes: number; level: EvidenceLevel; error?: string };

/** By key: what the sets say of their dumps. */
function describeDumps(sets: readonly ReadSet[]): Map<string, About> {
  const about = new Map<string, About>();
  for (const { set, levels } of sets) {
    for (const { key, database, sizeBytes } of set.manifest?.databases ?? []) {
      about.set(key, { sizeBytes, ...(levels.get(database) ?? { level: 'readable' }) });
    }
  }
  return about;
}

function toDump(
  { key, sizeBytes, updatedAt }: StoredEntry,
  { database, stamp, at }: BackupKey & { kind: 'dump' },
  described: ReadonlyMap<string, About>,
): Dump {
  const about = described.get(key);
  const dump = { database, key, stamp, at, sizeBytes, updatedAt };
  if (about === undefined) return { ...dump, level: 'uploaded' };
  if (about.sizeBytes !== sizeBytes) {
    const fault = `it has ${sizeBytes} bytes, and ${about.sizeBytes} were written`;
    return { ...dump, level: 'broken', fault };
  }
  return { ...dump, level: about.level, ...(about.error === undefined ? {} : { fault: about.error }) };
}

/** Dumps that a set names and the store has not: somebody has removed them, who was not retention. */
function findMissing(sets: readonly ReadSet[], present: ReadonlySet<string>): Dump[] {
  return sets.flatMap(({ set: { stamp, at, manifest, pruned } }) =>
    (manifest?.databases ?? [])
      .filter(({ key, database }) => !present.has(key) && !pruned.includes(database))
      .map(({ database, key }) => ({
        ...{ database, key, stamp, at, sizeBytes: 0 },
        ...{ level: 'broken' as const, fault: 'it is not there' },
      })),
  );
}

function compareDumps(a: Dump, b: Dump): number {
  return a.at.getTime() - b.at.getTime() || Buffer.compare(Buffer.from(a.database), Buffer.from(b.database));
}
