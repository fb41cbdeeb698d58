// Which dump a person means, and into what it may go. Pure.
import { InputError } from '../../errors.ts';
import type { DatabaseEngine } from '../engine.ts';
import type { Dump, Inventory } from '../inventory.ts';
import type { DumpRecord, Manifest } from '../manifest.ts';

export type ChosenDump = {
  dump: Dump;
  /** What its set says of it; undefined where nothing does. */
  record: DumpRecord | undefined;
  manifest: Manifest | undefined;
};

/** The one of the stamp, else the newest good one, else the newest that nothing speaks against. Throws InputError. */
export function chooseDump(
  { dumps, sets }: Inventory,
  { database, stamp }: { database: string; stamp?: string },
): ChosenDump {
  const own = dumps.filter((dump) => dump.database === database);
  const named = stamp === undefined ? own : own.filter((dump) => dump.stamp === stamp);
  const dump =
    named.findLast(({ level }) => level === 'readable' || level === 'restored') ??
    named.findLast(({ level }) => level === 'uploaded');
  if (dump === undefined) throw new InputError(explainNone({ dumps, own, named }, { database, stamp }));
  const manifest = sets.find((set) => set.stamp === dump.stamp)?.manifest;
  const record = manifest?.databases.find(({ key }) => key === dump.key);
  return { dump, record, manifest: record === undefined ? undefined : manifest };
}

const shown = 10;

function explainNone(
  { dumps, own, named }: { dumps: readonly Dump[]; own: readonly Dump[]; named: readonly Dump[] },
  { database, stamp }: { database: string; stamp: string | undefined },
): string {
  const cannot = `cannot restore ${JSON.stringify(database)}`;
  const broken = named.at(-1);
  if (broken !== undefined) return `${cannot}: its dump of ${broken.stamp} is broken: ${broken.fault ?? ''}`;
  if (own.length > 0) {
    const stamps = own.slice(-shown).map((dump) => dump.stamp);
    return `${cannot}: it has no dump of ${stamp}; the last ones are ${stamps.join(', ')}`;
  }
  const others = [...new Set(dumps.map((dump) => JSON.stringify(dump.database)))];
  const have =
    others.length === 0 ? 'there are no backups at all' : `there are dumps of ${others.join(', ')}`;
  return `${cannot}: it has no dump; ${have}`;
}

/** Throws InputError. */
export function requireTargetName(engine: Pick<DatabaseEngine, 'refuseName'>, name: string): void {
  const cause = engine.refuseName(name);
  if (cause !== undefined) throw new InputError(`cannot restore into ${JSON.stringify(name)}: ${cause}`);
}
