// What retention makes of a service's store, and in which order, so that a kill between any two requests leaves nothing that
// says more or less of a dump than is true. Pure.
//
// Set by set, oldest first: (1) `pruned.json` notes whose dumps go; one that is there all the same is as good as before. (2) The
// dumps. One that is noted and gone was removed by retention, not by somebody. (3) Once none is left: what the set says of itself,
// the manifest behind what belongs to it, and the note last.
import { dayMs } from '../../schedule/calendar.ts';
import type { BackupSet, Dump, Inventory } from '../inventory.ts';
import type { Pruned } from '../manifest.ts';
import { type SetFile, setKey } from '../names.ts';
import type { DatabaseRetention, Decision } from './policy.ts';

export type Removal = {
  stamp: string;
  /** Absent where nothing of a manifest's goes. */
  note?: { key: string; document: Pruned };
  dumps: readonly Decision[];
  /** Of the set itself, in the order in which they go, once all of the dumps have gone; none where it stays. */
  files: readonly string[];
  filesReason: string;
};

/** What a set says of its dumps goes behind them, and what explains their absence goes last. */
const fileOrder: readonly SetFile[] = ['globals', 'evidence', 'manifest', 'pruned'];

/** `databases`: the decisions about all dumps, or about those of some databases; the dumps of others stay. */
export function planRemovals(
  inventory: Inventory,
  databases: readonly DatabaseRetention[],
  { prefix, now }: { prefix: string; now: Date },
): Removal[] {
  const going = databases.flatMap(({ decisions }) => decisions.filter(({ isKept }) => !isKept));
  const goingKeys = new Set(going.map(({ dump }) => dump.key));
  const kept = inventory.dumps.filter(({ key, updatedAt }) => updatedAt !== undefined && !goingKeys.has(key));
  const used = new Set(kept.map(({ stamp }) => stamp));
  const sets = new Map(inventory.sets.map((set) => [set.stamp, set]));
  const spared = findNewest(inventory.sets);
  const stamps = new Set([...going.map(({ dump }) => dump.stamp), ...sets.keys()]);
  return [...stamps].sort().flatMap((stamp) => {
    const set = sets.get(stamp);
    const dumps = going.filter(({ dump }) => dump.stamp === stamp);
    const note = set && noteOf(set, dumps, prefix);
    const isLeft = set !== undefined && !used.has(stamp) && !spared.has(set) && !isUnderWay(set, now);
    const files = isLeft ? orderFiles(set, note?.key, prefix) : [];
    if (dumps.length === 0 && files.length === 0) return [];
    const filesReason = 'no dump of it is left';
    return [{ stamp, ...(note === undefined ? {} : { note }), dumps, files, filesReason }];
  });
}

/** The last one stays, and the last one that was finished. */
function findNewest(sets: readonly BackupSet[]): Set<BackupSet | undefined> {
  return new Set([sets.at(-1), sets.findLast(({ manifest }) => manifest !== undefined)]);
}

/** A run writes its manifest last, and has it within a day. What retention has begun with is no run's any more. */
function isUnderWay({ manifest, updatedAt, pruned }: BackupSet, now: Date): boolean {
  return manifest === undefined && pruned.length === 0 && now.getTime() - updatedAt.getTime() < dayMs;
}

function noteOf(set: BackupSet, dumps: readonly Decision[], prefix: string): Removal['note'] {
  const named = new Set(set.manifest?.databases.map(({ key }) => key));
  const isNamed = ({ dump }: { dump: Dump }): boolean => named.has(dump.key);
  const going = dumps.filter(isNamed).map(({ dump }) => dump.database);
  if (going.length === 0) return undefined;
  const databases = [...new Set([...set.pruned, ...going])];
  return { key: setKey(prefix, set.stamp, 'pruned'), document: { version: 1, databases } };
}

function orderFiles(set: BackupSet, noteKey: string | undefined, prefix: string): string[] {
  const present = new Set([...set.keys, ...(noteKey === undefined ? [] : [noteKey])]);
  return fileOrder.map((file) => setKey(prefix, set.stamp, file)).filter((key) => present.has(key));
}
