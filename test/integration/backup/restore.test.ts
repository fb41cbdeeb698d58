// A dump back into a database of a real PostgreSQL: each name into its own, and a target that is never left half.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { dumpKey } from '../../../src/lib/backup/names.ts';
import { collectAfterAll } from '../../support/after-all.ts';
import { listBackups, startDatabase, type TestDatabase } from '../../support/database-service.ts';
import { engineSocket } from '../../support/engine.ts';
import { makeNode, type ReeveEnd, type TestNode } from '../../support/node.ts';
import { buildPostgresImage, imageMs } from '../../support/postgres.ts';
import { digestSql, richSql } from '../../support/restored.ts';

const whenDone = collectAfterAll();

/** As arguments of a program several of these would be options or connection strings. */
const names = [
  '-Fc',
  'a=b',
  'postgres://x',
  '../evil',
  'with "quotes"',
  "o'brien",
  'two\nlines',
  'naïve ☃',
  '$x; `y`',
];

const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;
const literal = (name: string): string => `'${name.replaceAll("'", "''")}'`;

describe('a restore into a real PostgreSQL', () => {
  let node: TestNode;
  let db: TestDatabase;
  let stamp: string;
  let prefix: string;
  let digest: string;
  const file = (key: string): string => join(node.stateDir, 'backups', key);
  const restore = (...words: string[]): Promise<ReeveEnd> =>
    node.reeve('backup', 'restore', '--json', 'blog/db', ...words);
  const databases = async (): Promise<string[]> =>
    (await db.psql("SELECT encode(datname::text::bytea, 'hex') FROM pg_database WHERE NOT datistemplate"))
      .split('\n')
      .map((hex) => Buffer.from(hex, 'hex').toString())
      .sort();

  beforeAll(async () => {
    buildPostgresImage(engineSocket());
    node = makeNode({ onTestFinished: whenDone });
    db = await startDatabase(node);
    // What a person keeps for themselves in there has no say (O15).
    await db.exec('sh', '-c', `printf '%s\\n' '\\echo hello' '\\set AUTOCOMMIT off' >/root/.psqlrc`);
    await db.psql('CREATE DATABASE shop');
    for (const statement of richSql) await db.psql(statement, 'shop');
    digest = await db.psql(digestSql, 'shop');
    for (const name of names) {
      await db.psql(`CREATE DATABASE ${identifier(name)}`);
      await db.psql(`CREATE TABLE who AS SELECT ${literal(name)}::text AS name`, name);
    }
    const end = await node.reeve('backup', '--now', '--json');
    expect(end.status, end.stderr).toBe(0);
    const manifest = listBackups(node).find((path) => path.endsWith('manifest.json')) ?? '';
    stamp = manifest.split('/').at(-2) ?? '';
    prefix = manifest.split('_sets/')[0] ?? '';
  }, imageMs);

  it('brings each database back under its own name, with its own rows (L77, L78)', async () => {
    expect((await node.reeve('backup', 'prune')).status).toBe(0);
    for (const name of names) await db.psql(`DROP DATABASE ${identifier(name)}`);
    for (const name of names) {
      const end = await restore('--', name);
      expect(end.status, `${name}: ${end.stderr}`).toBe(0);
      expect(end.json()).toMatchObject({ database: name, target: name, tables: 1, rows: 1, proven: true });
    }
    for (const name of names) expect(await db.psql('SELECT name FROM who', name)).toBe(name);
    expect(await databases()).toEqual([...names, 'postgres', 'shop'].sort());
  });

  it('brings back bytes, large objects, sequences, owners, rights, partitions and views (O8, L79)', async () => {
    await db.psql('DROP DATABASE shop');
    const end = await restore('shop');
    expect(end.status, end.stderr).toBe(0);
    expect(end.json()).toMatchObject({ tables: 5, rows: 1019 });
    expect(await db.psql(digestSql, 'shop')).toBe(digest);
  });

  it('makes the roles that are missing where it is told to, and names them where it is not', async () => {
    await db.psql('DROP DATABASE shop');
    await db.psql('DROP ROLE readers, "app owner"');
    const without = await restore('shop');
    expect({ status: without.status, stderr: without.stderr }).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('role "app owner" does not exist'),
    });
    expect(await databases()).not.toContain('shop');
    const end = await restore('shop', '--globals');
    expect(end.status, end.stderr).toBe(0);
    expect(end.json()).toMatchObject({ roles: ['app owner', 'readers'] });
    expect(await db.psql(digestSql, 'shop')).toBe(digest);
    const settings =
      "SELECT (SELECT rolconfig FROM pg_roles r WHERE r.oid = a.oid), rolpassword IS NOT NULL, pg_has_role('app owner', 'readers', 'MEMBER') FROM pg_authid a";
    expect(await db.psql(`${settings} WHERE rolname = 'app owner'`)).toBe('{"search_path=shop, public"}|t|t');
  });

  it('refuses a target that is not empty, and replaces it where it is forced to', async () => {
    await db.psql('INSERT INTO public.one VALUES (2)', 'shop');
    const refused = await restore('shop');
    expect({ status: refused.status, stderr: refused.stderr }).toMatchObject({
      status: 65,
      stderr: expect.stringContaining('it is not empty; say --force'),
    });
    expect(await db.psql('SELECT count(*) FROM public.one', 'shop')).toBe('2');
    const unasked = await restore('shop', '--force');
    expect(unasked.status).toBe(64);
    await db.psql('ALTER DATABASE shop SET search_path TO "$user", shop');
    await db.psql('ALTER DATABASE shop OWNER TO "app owner"');
    await db.psql('GRANT CONNECT ON DATABASE shop TO readers');
    const about =
      "SELECT datdba::regrole, (SELECT array_agg(a::text ORDER BY a::text) FROM unnest(datacl) a), (SELECT setconfig FROM pg_db_role_setting WHERE setdatabase = d.oid) FROM pg_database d WHERE datname = 'shop'";
    const before = await db.psql(about);
    const end = await restore('shop', '--force', '--yes');
    expect(end.status, end.stderr).toBe(0);
    expect(end.json()).toMatchObject({ replaced: true, rows: 1019 });
    expect(await db.psql('SELECT count(*) FROM public.one', 'shop')).toBe('1');
    expect(await db.psql(about)).toBe(before);
    expect(await databases()).toEqual([...names, 'postgres', 'shop'].sort());
  });

  describe('that cannot go on', () => {
    const shop = (): string => file(dumpKey(prefix, 'shop', stamp));
    const intact = async (): Promise<void> => {
      expect(await db.psql(digestSql, 'shop')).toBe(digest);
      expect(await databases()).toEqual([...names, 'postgres', 'shop'].sort());
    };
    /** A dump without a manifest, as launch-pad makes them; its stamp. */
    const writeUnproven = (sql: string, database = 'shop'): string => {
      const older = '2020-01-02T03-04-05Z';
      writeFileSync(file(dumpKey(prefix, database, older)), gzipSync(sql));
      return older;
    };
    const complete = '--\n-- PostgreSQL database dump complete\n--\n\n\\unrestrict abc\n';

    it.each([10, 60, 99])(
      'refuses a dump that is cut at %i percent, before it touches the target (O4)',
      async (percent) => {
        const bytes = readFileSync(shop());
        writeFileSync(shop(), bytes.subarray(0, Math.floor((bytes.length * percent) / 100)));
        const end = await restore('shop', '--set', stamp, '--force', '--yes');
        writeFileSync(shop(), bytes);
        expect({ status: end.status, stderr: end.stderr }).toEqual({
          status: 65,
          stderr: expect.stringMatching(/its dump of .* is broken: it has \d+ bytes, and \d+ were written/),
        });
        await intact();
      },
    );

    it('refuses other bytes of the same length (O4)', async () => {
      const bytes = readFileSync(shop());
      writeFileSync(shop(), Buffer.concat([bytes.subarray(0, -1), Buffer.of((bytes.at(-1) ?? 0) ^ 1)]));
      const end = await restore('shop', '--force', '--yes');
      writeFileSync(shop(), bytes);
      expect(end.status).toBe(1);
      expect(end.stderr).toMatch(/its dump is broken: /);
      await intact();
    });

    it('restores a dump without a manifest, and says that it is unproven (O12)', async () => {
      const older = writeUnproven(`\\restrict abc\nCREATE TABLE t AS SELECT 1 AS n;\n${complete}`);
      const end = await restore('shop', '--set', older, '--to', 'copy');
      expect(end.status, end.stderr).toBe(0);
      expect(end.json()).toMatchObject({ proven: false, target: 'copy', tables: 1, rows: 1 });
      expect(end.json()['notes']).toEqual([expect.stringContaining('unproven')]);
      await db.psql('DROP DATABASE copy');
    });

    it('refuses one whose text ends before the dump does, as a pipe makes them (R53)', async () => {
      const older = writeUnproven('CREATE TABLE t AS SELECT 1 AS n;\n');
      const end = await restore('shop', '--set', older, '--force', '--yes');
      expect({ status: end.status, stderr: end.stderr }).toEqual({
        status: 1,
        stderr: expect.stringContaining('it ends before the dump does'),
      });
      await intact();
    });

    it.each([
      ['a statement', 'CREATE TABLE t AS SELECT 1;\nSELECT 1 / 0;\n', 'division by zero'],
      ['an extension', 'CREATE EXTENSION nowhere;\n', 'extension "nowhere" is not available'],
      ['an early end', 'CREATE TABLE t AS SELECT 1;\n\\q\n', ''],
    ])('leaves the target as it was where %s fails, and says why', async (_, sql, cause) => {
      const older = writeUnproven(`${sql}${'-- filler\n'.repeat(100_000)}${complete}`);
      const end = await restore('shop', '--set', older, '--force', '--yes');
      expect({ status: end.status, stderr: end.stderr }).toEqual({
        status: 1,
        stderr: expect.stringContaining(cause),
      });
      await intact();
    });

    it('replaces a database that is in use, and ends who uses it', async () => {
      const busy = db.psql('SELECT pg_sleep(300)', 'shop').then(
        () => 'done',
        () => 'ended',
      );
      const user =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = 'shop' AND query LIKE '%pg_sleep(300)%'";
      await expect.poll(() => db.psql(user), { timeout: 30_000 }).toBe('1');
      const end = await restore('shop', '--force', '--yes');
      expect(end.status, end.stderr).toBe(0);
      expect(await busy).toBe('ended');
      await intact();
    });

    it.each(['SIGKILL', 'SIGTERM'] as const)(
      'leaves nothing for long where it ends by %s',
      async (signal) => {
        const older = writeUnproven(`CREATE TABLE t AS SELECT 1;\nSELECT pg_sleep(300);\n${complete}`);
        const run = node.start(['backup', 'restore', 'blog/db', 'shop', '--set', older, '--force', '--yes']);
        const isUnderWay =
          "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(300)%' AND datname LIKE 'reeve-restore-%'";
        await expect.poll(() => db.psql(isUnderWay), { timeout: 60_000 }).toBe('1');
        run.child.kill(signal);
        const end = await run.end;
        if (signal === 'SIGTERM') await intact();
        else expect(end.signal).toBe('SIGKILL');
        const next = await restore('a=b', '--force', '--yes');
        expect(next.status, next.stderr).toBe(0);
        await intact();
        expect(await db.psql(isUnderWay)).toBe('0');
      },
    );

    it.each([
      [['nobody'], 'there are dumps of "'],
      [
        ['shop', '--set', '2020-06-04T03-00-00Z'],
        'it has no dump of 2020-06-04T03-00-00Z; the last ones are',
      ],
      [['shop', '--to', 'template1'], 'it is a template'],
      [['shop', '--to', 'x'.repeat(64)], 'at most 63 bytes'],
      [['shop', '--to', ''], 'a database has a name'],
    ])('refuses %j', async (words, cause) => {
      const end = await restore(...words);
      expect({ status: end.status, stderr: end.stderr }).toEqual({
        status: 65,
        stderr: expect.stringContaining(cause),
      });
      await intact();
    });

    it('is told in the history', async () => {
      const { stdout } = await node.reeve('history', 'blog/db', '--json');
      const events = (JSON.parse(stdout) as { events: { action: string; outcome: string }[] }).events;
      const outcomes = events.filter(({ action }) => action === 'restore').map(({ outcome }) => outcome);
      expect(new Set(outcomes)).toEqual(new Set(['done', 'failed']));
    });
  });
});
