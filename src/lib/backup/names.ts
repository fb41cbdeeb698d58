// Where backups lie below a service's prefix: `<database>/<stamp>.sql.gz` as launch-pad has it, and one set a run,
// `_sets/<stamp>/`, so that below a database's own name there are its dumps and nothing else. Pure.

/** Directory of the sets. No database's name is written this way. */
const setsDirectory = '_sets';

const stampPattern = /^(\d{4}-\d{2}-\d{2})T(\d{2})-(\d{2})-(\d{2})Z$/;

/** The scheduled fire as it stands in keys, in UTC and whole seconds: `2026-06-04T03-00-00Z`. */
export function stampOf(fire: Date): string {
  return `${fire.toISOString().slice(0, 19).replaceAll(':', '-')}Z`;
}

/** The instant of a stamp; undefined for what is none, as `2026-02-31T...`. */
export function parseStamp(stamp: string): Date | undefined {
  const [, day, hour, minute, second] = stampPattern.exec(stamp) ?? [];
  if (day === undefined) return undefined;
  const instant = new Date(`${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(instant.getTime()) || stampOf(instant) !== stamp ? undefined : instant;
}

/**
 * A database's name as a part of a key. Names of letters, digits, `_`, `.` and `-` stay as they are; every other byte of
 * UTF-8 is written `%XX`, and so is a first character that a part of a key cannot have. Reversible.
 */
export function encodeDatabase(name: string): string {
  const encoded = [...Buffer.from(name)].map(encodeByte).join('');
  if (encoded.startsWith('.')) return `%2E${encoded.slice(1)}`;
  return encoded === setsDirectory ? `%5F${encoded.slice(1)}` : encoded;
}

function encodeByte(byte: number): string {
  const character = String.fromCharCode(byte);
  if (/[A-Za-z0-9_.-]/.test(character)) return character;
  return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
}

/** The name that `encodeDatabase` wrote so; undefined for what it never writes. */
export function decodeDatabase(part: string): string | undefined {
  try {
    const name = decodeURIComponent(part);
    return encodeDatabase(name) === part ? name : undefined;
  } catch {
    return undefined;
  }
}

/** `prefix` is the service's own, ending in a slash, or empty. */
export function dumpKey(prefix: string, database: string, stamp: string): string {
  return `${prefix}${encodeDatabase(database)}/${stamp}.sql.gz`;
}

export const setFiles = {
  manifest: 'manifest.json',
  globals: 'globals.sql.gz',
  evidence: 'evidence.json',
  pruned: 'pruned.json',
};

export type SetFile = keyof typeof setFiles;

export function setKey(prefix: string, stamp: string, file: SetFile): string {
  return `${prefix}${setsDirectory}/${stamp}/${setFiles[file]}`;
}

export type BackupKey =
  | { kind: 'dump'; database: string; stamp: string; at: Date }
  | { kind: 'set'; file: SetFile; stamp: string; at: Date };

/** What a key below the prefix names; undefined for what no backup of ours or of launch-pad's is called. */
export function parseBackupKey(prefix: string, key: string): BackupKey | undefined {
  if (!key.startsWith(prefix)) return undefined;
  const parts = key.slice(prefix.length).split('/');
  return parts[0] === setsDirectory ? parseSetKey(parts) : parseDumpKey(parts);
}

function parseSetKey([, stamp = '', name, ...rest]: readonly string[]): BackupKey | undefined {
  const at = parseStamp(stamp);
  const file = (Object.keys(setFiles) as SetFile[]).find((known) => setFiles[known] === name);
  if (at === undefined || file === undefined || rest.length > 0) return undefined;
  return { kind: 'set', file, stamp, at };
}

function parseDumpKey([part = '', name = '', ...rest]: readonly string[]): BackupKey | undefined {
  const database = decodeDatabase(part);
  const stamp = name.endsWith('.sql.gz') ? name.slice(0, -'.sql.gz'.length) : '';
  const at = parseStamp(stamp);
  if (database === undefined || database === '' || at === undefined || rest.length > 0) return undefined;
  return { kind: 'dump', database, stamp, at };
}
