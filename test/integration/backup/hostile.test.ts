// Who can write to a database, or to the bucket of its backups, does not get more from reeve than that.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { dumpKey } from '../../../src/lib/backup/names.ts';
import { collectAfterAll } from '../../support/after-all.ts';
import { listBackups, startDatabase, type TestDatabase } from '../../support/database-service.ts';
import { engineSocket } from '../../support/engine.ts';
import { askDocker, makeNode, type TestNode } from '../../support/node.ts';
import { buildPostgresImage, imageMs } from '../../support/postgres.ts';

const whenDone = collectAfterAll();

/** Everything that a session of ours might call, in words that fit it better than the server's own. */
const trapSql = `
CREATE ROLE mallory LOGIN;
GRANT CREATE ON SCHEMA public TO mallory;
SET ROLE mallory;
CREATE FUNCTION public.count(boolean) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN ALTER ROLE mallory SUPERUSER; RETURN 0; END $$;
CREATE FUNCTION public.format(text, name) RETURNS text LANGUAGE plpgsql AS $$
BEGIN ALTER ROLE mallory SUPERUSER; RETURN ''; END $$;
RESET ROLE;
ALTER DATABASE postgres SET search_path = public, pg_catalog;
`;

describe('a database that others may write to', () => {
  let node: TestNode;
  let db: TestDatabase;
  let prefix: string;
  const file = (key: string): string => join(node.stateDir, 'backups', key);
  const isSuperuser = (): Promise<string> =>
    db.psql("SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = 'mallory'");

  beforeAll(async () => {
    buildPostgresImage(engineSocket());
    node = makeNode({ project: 'hostile', onTestFinished: whenDone });
    db = await startDatabase(node);
    await db.psql('CREATE DATABASE shop');
    await db.psql('CREATE ROLE guest');
    await db.psql('CREATE TABLE item AS SELECT 1 AS n', 'shop');
    await db.psql(trapSql);
    const end = await node.reeve('backup', '--now', '--json');
    expect(end.status, end.stderr).toBe(0);
    const manifest = listBackups(node).find((path) => path.endsWith('manifest.json')) ?? '';
    prefix = manifest.split('_sets/')[0] ?? '';
  }, imageMs);

  it('has no function of theirs called by its superuser, by backups and restores (O15)', async () => {
    // A session of a run that was killed, which the next one has to end.
    const left = `PGAPPNAME=reeve-backup-killed psql -X -U postgres -c 'SELECT pg_sleep(600)' >/dev/null 2>&1 &`;
    await askDocker(node.socket, ['exec', '-d', db.container, 'sh', '-c', left]);
    const asleep =
      "SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE application_name = 'reeve-backup-killed'";
    await expect.poll(() => db.psql(asleep), { timeout: 30_000 }).toBe('1');
    const backup = await node.reeve('backup', '--now');
    expect(backup.status, backup.stderr).toBe(0);
    expect(await db.psql(asleep)).toBe('0');
    expect(await isSuperuser()).toBe('f');
    const end = await node.reeve('backup', 'restore', 'hostile/db', 'shop', '--force', '--yes');
    expect(end.status, end.stderr).toBe(0);
    expect(await isSuperuser()).toBe('f');
  });

  it('is restored whatever its role sets for its sessions (L79)', async () => {
    const settings = { default_transaction_read_only: 'on', statement_timeout: '5ms' };
    const set = Object.entries(settings).map(
      ([name, value]) => `ALTER ROLE postgres SET ${name} = '${value}'`,
    );
    await db.psql(`DO $$ BEGIN ${set.join('; ')}; END $$`);
    const end = await node.reeve('backup', 'restore', 'hostile/db', 'shop', '--force', '--yes');
    // From its very beginning: five milliseconds may be over before a session has set anything.
    const options = 'PGOPTIONS=-c statement_timeout=0 -c default_transaction_read_only=off';
    await db.exec('env', options, 'psql', '-U', 'postgres', '-c', 'ALTER ROLE postgres RESET ALL');
    expect(end.status, end.stderr).toBe(0);
  });

  describe('whose bucket others may write to', () => {
    const programs = [
      ['\\!', '\\! touch /tmp/owned'],
      ['a pipe behind a statement', 'SELECT 1 \\g |touch /tmp/owned'],
      ['\\copy', "\\copy (SELECT 1) TO PROGRAM 'touch /tmp/owned'"],
      ['\\restrict, and its own key', '\\unrestrict abc\n\\! touch /tmp/owned'],
    ] as const;
    const aDump = (line: string): string =>
      `--\n-- PostgreSQL database dump\n--\n\n\\restrict abc\n\nCREATE TABLE item AS SELECT 1 AS n;\n${line}\n--\n-- PostgreSQL database dump complete\n--\n\n\\unrestrict abc\n\n`;

    it.each(programs)('runs no program of theirs in the container: %s (O15)', async (_, line) => {
      const older = '2020-01-02T03-04-05Z';
      writeFileSync(file(dumpKey(prefix, 'shop', older)), gzipSync(aDump(line)));
      const words = ['backup', 'restore', 'hostile/db', 'shop', '--set', older, '--to', 'copy'];
      const end = await node.reeve(...words);
      expect({ status: end.status, stderr: end.stderr }).toEqual({
        status: 1,
        stderr: expect.stringMatching(/cannot restore "shop" of .*restrict/),
      });
      await expect(db.exec('ls', '/tmp/owned')).rejects.toThrow();
      expect(await db.psql("SELECT count(*) FROM pg_catalog.pg_database WHERE datname = 'copy'")).toBe('0');
    });

    it('runs none that a role names either (O15)', async () => {
      await db.psql('DROP ROLE guest');
      const globals = listBackups(node).findLast((path) => path.endsWith('globals.sql.gz')) ?? '';
      const roles = gunzipSync(readFileSync(file(globals))).toString();
      const forged = gzipSync(
        roles.replace('CREATE ROLE guest;', 'CREATE ROLE guest \\! touch /tmp/owned\n;'),
      );
      const path = file(`${globals.slice(0, -'globals.sql.gz'.length)}manifest.json`);
      const manifest = JSON.parse(readFileSync(path, 'utf8')) as { globals: object };
      const sha256 = createHash('sha256').update(forged).digest('hex');
      writeFileSync(file(globals), forged);
      writeFileSync(
        path,
        JSON.stringify({ ...manifest, globals: { ...manifest.globals, sizeBytes: forged.length, sha256 } }),
      );
      const end = await node.reeve('backup', 'restore', 'hostile/db', 'shop', '--to', 'copy', '--globals');
      expect({ status: end.status, stderr: end.stderr }).toEqual({
        status: 1,
        stderr: expect.stringMatching(/cannot restore "shop" of .*restrict/),
      });
      await expect(db.exec('ls', '/tmp/owned')).rejects.toThrow();
    });
  });
});
