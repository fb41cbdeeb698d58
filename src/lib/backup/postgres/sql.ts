// The statements that a backup asks PostgreSQL with. Answers are lines of words and hexadecimal digits, whatever bytes names
// are made of. Pure.
import type { FoundDatabase } from '../engine.ts';
import type { TableRows } from '../manifest.ts';

/** A backend of ours names its run here, so that it can be found and ended. */
export const markerPrefix = 'reeve-backup-';

export function markerOf(runId: string): string {
  return `${markerPrefix}${runId}`;
}

/** Databases that a restore makes, and gives their name or removes at its end. */
export const restorePrefix = 'reeve-restore-';

/** Names as the catalogue has them: no conversion, since each database may have its own encoding. */
export const aboutSql = `
SET client_encoding = 'SQL_ASCII';
SELECT 'version', current_setting('server_version'), current_setting('server_version_num');
SELECT 'database', encode(textsend(datname::text), 'hex'),
  CASE WHEN has_database_privilege(oid, 'CONNECT') AND datallowconn AND datconnlimit <> -2
    THEN pg_database_size(oid) ELSE 0 END,
  datistemplate, datallowconn, datconnlimit = -2
FROM pg_catalog.pg_database ORDER BY datname;
`;

export type About = { version: string; versionNumber: number; databases: FoundDatabase[] };

export function parseAbout(lines: readonly string[]): About {
  const rows = lines.map((line) => line.split('|'));
  const [, version = '', number = ''] = rows.find(([kind]) => kind === 'version') ?? [];
  const databases = rows.flatMap(([kind, ...fields]) => (kind === 'database' ? [parseDatabase(fields)] : []));
  return { version: /^[^ ]+/.exec(version)?.[0] ?? '', versionNumber: Number(number), databases };
}

function parseDatabase([hex = '', size, template, connectable, broken]: readonly string[]): FoundDatabase {
  const bytes = Buffer.from(hex, 'hex');
  const text = bytes.toString('utf8');
  const name = Buffer.from(text).equals(bytes) ? text : undefined;
  const skip =
    (name?.startsWith(restorePrefix) && 'it is what a restore that was ended has left') ||
    (template === 't' && 'it is a template') ||
    (broken === 't' && 'it is invalid: its removal was interrupted') ||
    (connectable === 'f' && 'it allows no connections');
  return {
    name,
    shown: name ?? `0x${hex}`,
    sizeBytes: Number(size),
    isOwn: name === 'postgres',
    ...(skip ? { skip } : {}),
  };
}

/** Whether this role may read what passwords are kept as. */
export const canReadPasswordsSql = `
SELECT 'passwords', has_table_privilege('pg_catalog.pg_authid', 'SELECT');
`;

/**
 * Tables whose rows a dump has: ordinary ones and partitions, each by itself, so that nothing is counted twice. Not those of
 * extensions, which make them anew, and not temporary ones, which are other sessions'.
 */
const dumpedTables = `pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
    WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = c.oid AND d.deptype = 'e')`;

/** Answers that `parseRows` reads, in any session whose `search_path` is empty. */
export const countRowsSql = `
SELECT format('SELECT ''rows'', encode(textsend(%L), ''hex''), encode(textsend(%L), ''hex''), count(*) FROM ONLY %I.%I',
  n.nspname, c.relname, n.nspname, c.relname)
FROM ${dumpedTables} ORDER BY n.nspname, c.relname
\\gexec
`;

/**
 * A session that holds a snapshot open, tells its id and the database's encoding, and counts in it. The tables are locked as the dump locks them, before it
 * does: one that is emptied or dropped between its dump and its count would be counted wrong. It gives up by itself where
 * nobody ends it.
 */
export function snapshotSql({ lockMs, dumpMs }: { lockMs: number; dumpMs: number }): string {
  return `
SET client_encoding = 'UTF8';
SET search_path = '';
SET statement_timeout = 0;
SET row_security = off;
SET lock_timeout = ${lockMs};
SET idle_in_transaction_session_timeout = ${dumpMs};
BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY;
SELECT format('LOCK TABLE ONLY %I.%I IN ACCESS SHARE MODE', n.nspname, c.relname) FROM ${dumpedTables}
\\gexec
SELECT 'snapshot', pg_catalog.pg_export_snapshot(), current_setting('server_encoding');
${countRowsSql}
SELECT 'counted';
`;
}

export function parseRows(line: string): TableRows | undefined {
  const [kind, schema = '', table = '', rows] = line.split('|');
  if (kind !== 'rows') return undefined;
  const decode = (hex: string): string => Buffer.from(hex, 'hex').toString('utf8');
  return { schema: decode(schema), table: decode(table), rows: Number(rows) };
}

/** How many there still were. A marker has no character that would end the text. */
export function terminateSql(marker: string): string {
  return `
SELECT 'left', count(pg_catalog.pg_terminate_backend(pid)) FROM pg_catalog.pg_stat_activity
WHERE left(application_name, ${marker.length}) = '${marker}' AND pid <> pg_catalog.pg_backend_pid();
`;
}

/** `pg_dump (PostgreSQL) 15.18 (Debian 15.18-1)` */
export function parseClientVersion(text: string): { version: string; major: number } | undefined {
  const [, version] = /\(PostgreSQL\) (\d+[^\s]*)/.exec(text) ?? [];
  return version === undefined ? undefined : { version, major: majorOf(version) };
}

/** 90624 is 9.6.24 and 150018 is 15.18; before 10 the first two numbers were the major version. */
export function majorOfNumber(versionNumber: number): number {
  const first = Math.floor(versionNumber / 10_000);
  return first >= 10 ? first : first + (Math.floor(versionNumber / 100) % 100) / 100;
}

function majorOf(version: string): number {
  const [first = '0', second = '0'] = version.split('.');
  return Number.parseInt(first, 10) >= 10 ? Number.parseInt(first, 10) : Number(first) + Number(second) / 100;
}
