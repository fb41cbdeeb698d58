// Rows are counted in the snapshot that the dump is of, and nobody waits for a dump.
import { beforeAll, describe, expect, it } from 'vitest';
import { collectAfterAll } from '../../support/after-all.ts';
import {
  holdTable,
  lastStamp,
  listBackups,
  makeDue,
  readDump,
  readManifest,
  replaceDump,
  restoreDump,
  startDatabase,
  type TestDatabase,
  waitingSql,
} from '../../support/database-service.ts';
import { engineSocket } from '../../support/engine.ts';
import { makeNode, type TestNode } from '../../support/node.ts';
import { buildPostgresImage, imageMs } from '../../support/postgres.ts';

const whenDone = collectAfterAll();

/** Rows of each table in a plain dump. */
function countCopied(dump: string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const [, table = '', rows = ''] of dump.matchAll(
    /^COPY (.+?) \(.*\) FROM stdin;\n([\s\S]*?)\\\.$/gm,
  )) {
    counts[table] = rows.split('\n').length - 1;
  }
  return counts;
}

describe('the counts of a backup', () => {
  let node: TestNode;
  let db: TestDatabase;
  const set = `default/counted/db/_sets/${lastStamp}/manifest.json`;
  const dump = `default/counted/db/app/${lastStamp}.sql.gz`;

  beforeAll(async () => {
    buildPostgresImage(engineSocket());
    node = makeNode({ project: 'counted', onTestFinished: whenDone });
    db = await startDatabase(node);
    await db.psql('CREATE DATABASE app');
    await db.psql(
      `CREATE SCHEMA "odd.name";
       CREATE TABLE "odd.name"."a|b""c" AS SELECT generate_series(1, 7) AS i;
       CREATE TABLE nothing (i int);
       CREATE TABLE whole (i int) PARTITION BY RANGE (i);
       CREATE TABLE low PARTITION OF whole FOR VALUES FROM (0) TO (100);
       CREATE TABLE high PARTITION OF whole FOR VALUES FROM (100) TO (1000);
       INSERT INTO whole SELECT generate_series(50, 149);
       CREATE TABLE parent (i int);
       CREATE TABLE child () INHERITS (parent);
       INSERT INTO parent VALUES (1); INSERT INTO child VALUES (2), (3);
       CREATE UNLOGGED TABLE unlogged AS SELECT generate_series(1, 4) AS i;
       CREATE MATERIALIZED VIEW seen AS SELECT * FROM parent;
       CREATE VIEW looked AS SELECT * FROM parent;
       CREATE TABLE busy (i bigint, filler text DEFAULT repeat('x', 200));
       INSERT INTO busy SELECT generate_series(1, 50000);`,
      'app',
    );
  }, imageMs);

  it('are those of the dump, table by table, each once', async () => {
    makeDue(node);
    expect((await node.reeve('backup')).status).toBe(0);
    const tables = readManifest(node, set).databases[0]?.tables ?? [];
    expect(tables.map(({ schema, table, rows }) => [schema, table, rows])).toEqual([
      ['odd.name', 'a|b"c', 7],
      ['public', 'busy', 50_000],
      ['public', 'child', 2],
      ['public', 'high', 50],
      ['public', 'low', 50],
      ['public', 'nothing', 0],
      ['public', 'parent', 1],
      ['public', 'unlogged', 4],
    ]);
    expect(countCopied(readDump(node, dump))).toEqual({
      '"odd.name"."a|b""c"': 7,
      ...{ 'public.busy': 50_000, 'public.child': 2, 'public.high': 50, 'public.low': 50 },
      ...{ 'public.nothing': 0, 'public.parent': 1, 'public.unlogged': 4 },
    });
  });

  it('are those of its snapshot while others write and empty tables', async () => {
    makeDue(node);
    const writer = db.psql(
      `DO $$ BEGIN FOR i IN 1..40 LOOP
         INSERT INTO busy SELECT generate_series(1, 500); INSERT INTO whole VALUES (i);
         COMMIT; PERFORM pg_sleep(0.1);
       END LOOP; END $$`,
      'app',
    );
    await expect
      .poll(() => db.psql('SELECT count(*) FROM busy', 'app').then(Number), { timeout: 20_000 })
      .toBeGreaterThan(50_000);
    const backup = node.start(['backup']);
    await backup.waitFor('');
    const truncated = db.psql('SELECT pg_sleep(0.7); TRUNCATE nothing, unlogged', 'app');
    expect((await backup.end).status).toBe(0);
    await Promise.all([writer, truncated]);
    const counted = Object.fromEntries(
      (readManifest(node, set).databases[0]?.tables ?? []).map(({ schema, table, rows }) => [
        `${schema}.${table}`,
        rows,
      ]),
    );
    const copied = countCopied(readDump(node, dump));
    expect(counted['public.busy']).toBeGreaterThan(50_000);
    for (const table of ['busy', 'child', 'high', 'low', 'nothing', 'parent', 'unlogged']) {
      expect([table, counted[`public.${table}`]]).toEqual([table, copied[`public.${table}`]]);
    }
  });

  it('are taken although somebody asks for a whole table between its two locks', async () => {
    makeDue(node);
    // The dump asks for its locks no sooner than somebody waits, the first time.
    const asksForOne = `psql -X -A -t -c '${waitingSql}' | grep -qx 0`;
    const wait = `until [ -e /tmp/has-waited ] || ! ${asksForOne}; do sleep 0.1; done; touch /tmp/has-waited`;
    await replaceDump(db, `${wait}\nexec "$(dirname "$0")/real" "$@"`);
    const locked = `SELECT FROM pg_locks WHERE relation = 'nothing'::regclass AND mode = 'AccessShareLock' AND granted`;
    const truncated = db.psql(
      `DO $$ BEGIN WHILE NOT EXISTS (${locked}) LOOP PERFORM pg_sleep(0.001); END LOOP; END $$;
       TRUNCATE nothing; INSERT INTO nothing VALUES (1), (2);`,
      'app',
    );
    const startedAt = performance.now();
    expect((await node.reeve('backup')).status).toBe(0);
    await truncated;
    await restoreDump(db);
    // Nobody has waited for the whole limit of 60 seconds.
    expect(performance.now() - startedAt).toBeLessThan(40_000);
    const tables = readManifest(node, set).databases[0]?.tables ?? [];
    expect(tables.find(({ table }) => table === 'nothing')).toMatchObject({ rows: 2 });
    expect(countCopied(readDump(node, dump))).toMatchObject({ 'public.nothing': 2 });
  });

  it('are taken while ticks and heartbeats go on as before (L95, L96)', async () => {
    makeDue(node);
    // A dump that takes as long as somebody else holds a table.
    const release = await holdTable(db, { database: 'app', table: 'busy' });
    const backup = node.start(['backup']);
    await expect.poll(() => db.psql(waitingSql), { timeout: 30_000 }).not.toBe('0');
    const before = node.status().lastSeen;
    const tick = await node.reeve('reconcile');
    const beat = await node.reeve('heartbeat');
    expect(await db.psql(waitingSql)).not.toBe('0');
    expect([tick.status, beat.status]).toEqual([0, 0]);
    expect(node.status().lastSeen > before).toBe(true);
    // Nobody replaces its container meanwhile.
    const second = await node.reeve('backup');
    expect([second.status, second.stderr]).toEqual([75, expect.stringContaining('lock backup is held by')]);
    await release();
    expect((await backup.end).status).toBe(0);
    expect(listBackups(node)).toContain(dump);
  });
});

it('is of an app node’s own code: an edge has no part of it (L97)', async () => {
  const edge = makeNode({ cluster: { role: 'edge' } });
  const end = await edge.reeve('backup');
  expect([end.status, end.stderr]).toEqual([
    78,
    expect.stringContaining('cannot run reeve backup: the role of node'),
  ]);
});
