// What a backup of a real PostgreSQL is: its names, its contents, who may read it, and what is nowhere to be seen.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { encodeDatabase } from '../../../src/lib/backup/names.ts';
import { collectAfterAll } from '../../support/after-all.ts';
import {
  aDatabaseDeploy,
  findRemains,
  listBackups,
  nothingLeft,
  openDatabase,
  readDump,
  readManifest,
  startDatabase,
  type TestDatabase,
  waitForDatabase,
} from '../../support/database-service.ts';
import { engineSocket } from '../../support/engine.ts';
import { askDocker, makeNode, type ReeveEnd, type TestNode } from '../../support/node.ts';
import { buildPostgresImage, imageMs } from '../../support/postgres.ts';

const whenDone = collectAfterAll();

/** Each is a database's name; as an argument of pg_dump several of them would be options or connection strings. */
const names = [
  '-Fc',
  'a=b',
  'postgres://x',
  '../evil',
  'with "quotes"',
  "o'brien",
  'two\nlines',
  'naïve ☃',
  '_sets',
  '.hidden',
  '__proto__',
  'constructor',
];

const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;
const literal = (name: string): string => `'${name.replaceAll("'", "''")}'`;

type Answer = {
  outcome: string;
  services: {
    firedAt: string;
    outcome: string;
    error?: string;
    databases: { name: string; outcome: string; key: string; rows: number; tables: number; level: string }[];
    skipped: { database: string; reason: string }[];
  }[];
};
const answerOf = (end: ReeveEnd): Answer => end.json() as unknown as Answer;

describe('a backup of a real PostgreSQL', () => {
  let node: TestNode;
  let db: TestDatabase;
  let end: ReeveEnd;
  let stamp = '';
  const prefix = 'default/dumped/db';

  beforeAll(async () => {
    buildPostgresImage(engineSocket());
    node = makeNode({ project: 'dumped', onTestFinished: whenDone });
    db = await startDatabase(node, {
      // Files and variables of somebody else that would alter what clients print or where they connect.
      env: {
        POSTGRES_PASSWORD: 'pa$$ $(touch /tmp/x) `id` "\'',
        PGOPTIONS: '-c statement_timeout=1',
        PGCLIENTENCODING: 'LATIN1',
      },
    });
    await db.exec('sh', '-c', "printf '\\\\echo NOISE\\n\\\\pset format html\\n' > /root/.psqlrc");
    for (const name of names) {
      await db.psql(`CREATE DATABASE ${identifier(name)}`);
      await db.psql(`CREATE TABLE who AS SELECT ${literal(name)}::text AS am_i`, name);
    }
    await db.psql('CREATE DATABASE closed ALLOW_CONNECTIONS false');
    await db.psql('CREATE DATABASE pattern IS_TEMPLATE true');
    await db.psql("CREATE ROLE reader LOGIN PASSWORD 'hidden from dumps'");
    end = await node.reeve('backup', '--now', '--json');
    stamp = new Date(answerOf(end).services[0]?.firedAt ?? '')
      .toISOString()
      .replace('.000', '')
      .replaceAll(':', '-');
  }, imageMs);

  it('has a dump of each database under its own name, with its own contents (L77, L78, L81, L87, O15)', () => {
    expect([end.status, end.json().outcome]).toEqual([0, 'done']);
    const { databases = [] } = answerOf(end).services[0] ?? {};
    expect(databases.map(({ name }) => name).sort()).toEqual([...names].sort());
    for (const name of names) {
      const key = `${prefix}/${encodeDatabase(name)}/${stamp}.sql.gz`;
      expect(databases).toContainEqual(
        expect.objectContaining({ name, key, outcome: 'done', tables: 1, rows: 1, level: 'readable' }),
      );
      // COPY writes a line break in a value as two characters.
      expect(readDump(node, key)).toContain(`\n${name.replaceAll('\n', '\\n')}\n\\.\n`);
      expect(readDump(node, key)).toContain("SET client_encoding = 'UTF8';");
    }
    expect(listBackups(node).filter((path) => !path.startsWith('.'))).toHaveLength(names.length + 2);
  });

  it('leaves out what cannot be dumped, and says why (O13)', () => {
    expect(answerOf(end).services[0]?.skipped).toEqual([
      { database: 'closed', reason: 'it allows no connections' },
      { database: 'pattern', reason: 'it is a template' },
      { database: 'postgres', reason: expect.stringContaining("the server's own") },
      { database: 'template0', reason: 'it is a template' },
      { database: 'template1', reason: 'it is a template' },
    ]);
  });

  it('is a set, whose manifest has sizes, hashes and counts, and is as true as the files (O11)', () => {
    const manifest = readManifest(node, `${prefix}/_sets/${stamp}/manifest.json`);
    expect(manifest).toMatchObject({
      ...{ version: 1, project: 'dumped', service: 'db', nodeId: node.nodeId, engine: 'postgres' },
      serverVersion: expect.stringMatching(/^15\.\d+$/),
      ...{ image: 'reeve-test/postgres:15', imageId: expect.stringMatching(/^sha256:/) },
      globals: { key: `${prefix}/_sets/${stamp}/globals.sql.gz`, passwords: 'included' },
      failures: [],
    });
    const files = [...manifest.databases, ...(manifest.globals === undefined ? [] : [manifest.globals])];
    expect(files).toHaveLength(names.length + 1);
    for (const { key, sizeBytes, sha256 } of files) {
      const bytes = readFileSync(join(node.stateDir, 'backups', key));
      expect([bytes.length, createHash('sha256').update(bytes).digest('hex')]).toEqual([sizeBytes, sha256]);
    }
    for (const { key, rawBytes, tables } of manifest.databases) {
      expect(Buffer.byteLength(readDump(node, key))).toBe(rawBytes);
      expect(tables).toEqual([{ schema: 'public', table: 'who', rows: 1 }]);
    }
  });

  it('has the roles with their passwords beside the dumps (O11)', () => {
    const globals = readDump(node, `${prefix}/_sets/${stamp}/globals.sql.gz`);
    expect(globals).toContain('CREATE ROLE reader;');
    expect(globals).toMatch(/ALTER ROLE reader .* PASSWORD 'SCRAM-SHA-256/);
  });

  it('can be read by root alone, on its way and where it lies (L82, L83, O11)', () => {
    for (const path of listBackups(node)) {
      expect([path, statSync(join(node.stateDir, 'backups', path)).mode & 0o777]).toEqual([path, 0o600]);
    }
    expect(statSync(join(node.stateDir, 'dump-tmp')).mode & 0o777).toBe(0o700);
  });

  it('leaves nothing behind, neither here nor in the container (L88)', async () => {
    expect(await findRemains(node, db)).toEqual(nothingLeft);
    expect(await db.exec('sh', '-c', 'ls /tmp')).not.toContain('x');
  });

  it('is plain SQL in gzip that another server takes in (L79, O12)', () => {
    const key = `${prefix}/${encodeDatabase('a=b')}/${stamp}.sql.gz`;
    const file = join(node.stateDir, 'backups', key);
    expect(execFileSync('gzip', ['-t', file]).toString()).toBe('');
    // Patched servers end with a line behind the one that says that the dump is complete: it is not looked for.
    const text = readDump(node, key);
    expect(text).toMatch(/^\\restrict \w+$/m);
    expect(text.trimEnd().split('\n').at(-1)).toMatch(/^\\unrestrict \w+$/);
  });

  it('is told in history and in the node’s status (L71)', async () => {
    const events = (await node.reeve('history', 'dumped/db', '--json')).json()['events'] as {
      action: string;
    }[];
    expect(events.filter(({ action }) => action === 'dump')).toHaveLength(names.length);
    expect((await node.reeve('reconcile')).status).toBe(0);
    const { backup } = node.status().services[0] ?? {};
    expect(backup).toMatchObject({
      lastError: null,
      nextRunAt: expect.stringMatching(/-01-01T00:00:00\.000Z$/),
    });
    expect(backup?.lastSuccessAt).toBe(answerOf(end).services[0]?.firedAt);
    expect(backup?.databases.map(({ name }) => name)).toEqual([...names].sort());
    expect((await node.reeve('status')).status).toBe(0);
  });

  it('has no secret in any argument, line or document (L85, L86)', async () => {
    const events = await askDocker(engineSocket(), [
      ...['events', '--since', '10m', '--until', '0s', '--filter', `container=${db.container}`],
      ...['--format', '{{.Action}}'],
    ]);
    expect(events).toContain('exec_create: pg_dump');
    const manifest = readFileSync(
      join(node.stateDir, 'backups', `${prefix}/_sets/${stamp}/manifest.json`),
      'utf8',
    );
    for (const text of [end.stdout, end.stderr, events, manifest]) expect(text).not.toContain('touch /tmp/x');
    expect(events).not.toContain('AWS_');
  });
});

it('of a list has just these, and what is not there has failed (L77, L80, L94)', async () => {
  const node = makeNode({ project: 'listed' });
  const db = await startDatabase(node, {
    database: { engine: 'postgres', version: '15', databases: ['postgres', 'gone', 'app'] },
  });
  await db.psql('CREATE DATABASE app');
  await db.psql('CREATE DATABASE other');
  const end = await node.reeve('backup', '--now');
  expect([end.status, end.stdout.trim().split('\n')]).toEqual([
    1,
    [
      'listed/db "gone": failed: there is no such database; it has no good backup',
      expect.stringMatching(/^listed\/db "\w+": \d+ B in .*s, 0 tables, 0 rows, readable$/),
      expect.stringMatching(/^listed\/db "\w+": \d+ B in .*s, 0 tables, 0 rows, readable$/),
    ],
  ]);
  expect(
    listBackups(node)
      .filter((path) => path.endsWith('Z.sql.gz'))
      .map((path) => path.split('/')[3]),
  ).toEqual(['app', 'postgres']);
});

it('of a server that has nothing but its own database has failed, as nothing would be kept', async () => {
  const node = makeNode({ project: 'empty' });
  await startDatabase(node);
  const end = await node.reeve('backup', '--now');
  expect([end.status, end.stdout]).toEqual([1, expect.stringContaining('no database to dump')]);
  expect(listBackups(node)).toEqual([]);
});

it('whose name is no UTF-8 is told to have failed, and the others are there', async () => {
  const node = makeNode({ project: 'latin' });
  const db = await startDatabase(node, {
    env: { POSTGRES_PASSWORD: 'x y z w', POSTGRES_INITDB_ARGS: '--encoding=LATIN1 --locale=C' },
  });
  await db.psql('CREATE DATABASE app');
  await db.exec(
    'sh',
    '-c',
    `printf 'SET client_encoding = LATIN1; CREATE DATABASE "na\\357ve";' | psql -X -q -U postgres`,
  );
  const end = await node.reeve('backup', '--now');
  expect([end.status, end.stdout]).toEqual([
    1,
    expect.stringContaining('"0x6e61ef7665": failed: its name is no UTF-8'),
  ]);
  expect(end.stdout).toContain('latin/db "app": ');
});

it('of a role that may not read passwords has its roles without them (O11)', async () => {
  const node = makeNode({ project: 'managed' });
  const db = await startDatabase(node, { env: { POSTGRES_PASSWORD: 'x y z w' } });
  await db.psql("CREATE ROLE dumper LOGIN PASSWORD 'x y z w'");
  await db.psql('CREATE DATABASE app OWNER dumper');
  await node.deploy([aDatabaseDeploy({ env: { POSTGRES_PASSWORD: 'x y z w', POSTGRES_USER: 'dumper' } })]);
  expect((await node.reeve('reconcile')).status).toBe(0);
  await waitForDatabase(openDatabase(node, (await node.containers())[0]?.name ?? ''));
  const end = await node.reeve('backup', '--now', '--json');
  expect(end.status, end.stdout).toBe(0);
  const path = listBackups(node).find((file) => file.endsWith('manifest.json')) ?? '';
  expect(readManifest(node, path).globals?.passwords).toBe('excluded');
  const globals = readDump(node, path.replace('manifest.json', 'globals.sql.gz'));
  expect(globals).toContain('CREATE ROLE dumper;');
  expect(globals).not.toContain('PASSWORD');
});
