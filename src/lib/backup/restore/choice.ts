// Which dump a person means, and into what it may go. Pure.
import { InputError } from '../../errors.ts';
import type { Dump, Inventory } from '../inventory.ts';
import type { DumpRecord, Manifest } from '../manifest.ts';
import { restorePrefix } from '../postgres/sql.ts';

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

/** Of a name in PostgreSQL: a longer one would be cut without a word. */
const maxNameBytes = 63;

/** Throws InputError. */
export function requireTargetName(name: string): void {
  const cause = refuseName(name);
  if (cause !== undefined) throw new InputError(`cannot restore into ${JSON.stringify(name)}: ${cause}`);
}

function refuseName(name: string): string | undefined {
  if (name === '') return 'a database has a name';
  if (name.includes('\0')) return 'a name has no NUL character';
  if (Buffer.byteLength(name) > maxNameBytes) return `a name has at most ${maxNameBytes} bytes`;
  if (/^template[01]$/.test(name)) return 'it is a template';
  if (name.startsWith(restorePrefix)) return 'such names are for restores under way';
  return undefined;
}
