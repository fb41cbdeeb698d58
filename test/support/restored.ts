// What restores are tried with, and what they may leave in an engine: nothing.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Manifest, TableRows } from '../../src/lib/backup/manifest.ts';
import { askDocker } from './node.ts';

/** Statements that make one of each kind of thing that a dump has; 5 tables with 1019 rows. */
export const richSql: readonly string[] = [
  'CREATE ROLE "app owner" LOGIN PASSWORD \'it\'\'s; a "secret"\'',
  'CREATE ROLE readers NOLOGIN',
  'GRANT readers TO "app owner"',
  'ALTER ROLE "app owner" SET search_path TO shop, public',
  'CREATE SCHEMA shop AUTHORIZATION "app owner"',
  'CREATE TABLE shop.item (id serial PRIMARY KEY, name text NOT NULL, net numeric, gross numeric GENERATED ALWAYS AS (net * 1.19) STORED)',
  "INSERT INTO shop.item (name, net) SELECT 'item ' || n, n FROM generate_series(1, 1000) n",
  'ALTER TABLE shop.item OWNER TO "app owner"',
  'CREATE TABLE shop.log (at date NOT NULL, line text) PARTITION BY RANGE (at)',
  "CREATE TABLE shop.log_1 PARTITION OF shop.log FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')",
  "CREATE TABLE shop.log_2 PARTITION OF shop.log FOR VALUES FROM ('2026-02-01') TO ('2026-03-01')",
  "INSERT INTO shop.log SELECT date '2026-01-25' + n, 'line' FROM generate_series(1, 15) n",
  'CREATE MATERIALIZED VIEW shop.total AS SELECT count(*) AS items, sum(gross) AS gross FROM shop.item',
  'CREATE TABLE public.raw (id int, bytes bytea, words text)',
  "INSERT INTO public.raw VALUES (1, '\\x0d0a00ff', E'\\r\\n\\t\\\\'), (2, '', ''), (3, NULL, E'naïve \\u2603')",
  "SELECT lo_from_bytea(4711, '\\x0d0a00ff1a')",
  'CREATE TABLE public.one (n int DEFAULT 1, UNIQUE (n))',
  'INSERT INTO public.one VALUES (1)',
  "SELECT setval('shop.item_id_seq', 4242)",
  'GRANT SELECT ON shop.item TO readers',
];

/** What of it is compared: the same text before and after. */
export const digestSql = `
SELECT (SELECT md5(string_agg(i::text, '|' ORDER BY id)) FROM shop.item i),
  (SELECT tableowner FROM pg_tables WHERE tablename = 'item'),
  (SELECT count(*) FROM shop.log_1), (SELECT count(*) FROM shop.log_2), (SELECT t::text FROM shop.total t),
  (SELECT string_agg(r::text, '|' ORDER BY id) FROM public.raw r),
  (SELECT encode(lo_get(4711), 'hex')), (SELECT last_value FROM shop.item_id_seq),
  (SELECT relacl::text FROM pg_class WHERE relname = 'item')`;

/** Names of the scratch containers of a node, running or not. */
export async function listScratch(socket: string, nodeId: string): Promise<string[]> {
  const args = ['ps', '-a', '--filter', 'label=reeve.scratch', '--format', '{{.Names}}'];
  const names = (await askDocker(socket, args)).split('\n').filter((name) => name !== '');
  return names.filter((name) => name.startsWith(`reeve-scratch-${nodeId}-`));
}

export async function listVolumes(socket: string): Promise<string[]> {
  const names = (await askDocker(socket, ['volume', 'ls', '-q'])).split('\n');
  return names.filter((name) => name !== '').sort();
}

/** What a set says of one of its dumps, and the dump itself, as if the dump had been this text from the beginning. */
export function forgeDump(
  directory: string,
  manifestPath: string,
  { database, sql, rows = [] }: { database: string; sql: string; rows?: readonly TableRows[] },
): void {
  const manifest = JSON.parse(readFileSync(manifestPath, 'utf8')) as Manifest;
  const bytes = gzipSync(sql);
  const databases = manifest.databases.map((record) => {
    if (record.database !== database) return record;
    writeFileSync(join(directory, record.key), bytes);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const sizes = { sizeBytes: bytes.length, rawBytes: Buffer.byteLength(sql) };
    return { ...record, ...sizes, sha256, tables: [...rows] };
  });
  writeFileSync(manifestPath, JSON.stringify({ ...manifest, databases }));
}
