// A machine is lost: its databases come back on another one, out of nothing but the bucket and the deploy file.
import { beforeAll, describe, expect, it } from 'vitest';
import { collectAfterAll } from '../../support/after-all.ts';
import { startBucket } from '../../support/bucket.ts';
import { aDatabaseDeploy, startDatabase } from '../../support/database-service.ts';
import { engineSocket } from '../../support/engine.ts';
import { askDocker, makeNode } from '../../support/node.ts';
import { buildPostgresImage, imageMs } from '../../support/postgres.ts';
import { digestSql, listVolumes, richSql } from '../../support/restored.ts';

const whenDone = collectAfterAll();

describe('a new node', () => {
  beforeAll(() => buildPostgresImage(engineSocket()), imageMs);

  it('has what the old one had, with roles and encodings, and goes on making backups (L77, R53)', async () => {
    const { settings, env, proxy } = await startBucket({ whenFinished: whenDone });
    const { region, endpoint } = settings;
    const cluster = { region, endpoint, backups: `${settings.store}/kept` };
    const lost = makeNode({ cluster, env, onTestFinished: whenDone });
    const before = await startDatabase(lost);
    await before.psql('CREATE DATABASE shop');
    for (const statement of richSql) await before.psql(statement, 'shop');
    await before.psql(
      "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'",
    );
    await before.psql("CREATE TABLE word AS SELECT 'déjà vu'::text AS word", 'latin');
    const digest = await before.psql(digestSql, 'shop');
    expect((await lost.reeve('backup', '--now')).status).toBe(0);
    await askDocker(engineSocket(), ['rm', '-f', '-v', before.container]);
    const volumes = (await listVolumes(engineSocket())).filter((name) =>
      name.startsWith('launchpadvol_blog_'),
    );
    await askDocker(engineSocket(), ['volume', 'rm', ...volumes]);

    const node = makeNode({ cluster, env, onTestFinished: whenDone });
    const db = await startDatabase(node);
    for (const name of ['shop', 'latin']) {
      const end = await node.reeve('backup', 'restore', 'blog/db', name, '--globals');
      expect(end.status, end.stderr).toBe(0);
    }
    expect(await db.psql(digestSql, 'shop')).toBe(digest);
    const latin = "SELECT word, encode(convert_to(word, 'LATIN1'), 'hex') FROM word";
    expect(await db.psql(latin, 'latin')).toBe('déjà vu|64e96ae0207675');
    const encoding = "SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = 'latin'";
    expect(await db.psql(encoding)).toBe('LATIN1');

    const again = await node.reeve('backup', '--now');
    expect(again.status, again.stdout).toBe(0);
    const verified = await node.reeve('backup', 'verify', '--restore');
    expect(verified.status, verified.stdout).toBe(0);
    expect(verified.stdout).toMatch(
      /"latin": restored: 1 tables, 1 rows, in .*\n.*"shop": restored: 5 tables, 1019 rows/,
    );

    // What the network keeps back is no broken dump.
    proxy.fault = ({ method, path }) =>
      method === 'GET' && path.includes('/latin/') ? { kind: 'reset' } : undefined;
    const away = await node.reeve('backup', 'verify');
    proxy.fault = () => undefined;
    expect([away.status, away.stdout]).toEqual([
      1,
      expect.stringContaining('"latin": it could not be looked at: '),
    ]);
    const listed = await node.reeve('backup', 'list');
    expect(listed.stdout).not.toContain('broken');
  });

  it('of another superuser, with passwords on its socket, is restored as well', async () => {
    const project = 'other';
    const node = makeNode({ project, onTestFinished: whenDone });
    const env = {
      ...{ POSTGRES_USER: 'chief', POSTGRES_DB: 'shop', POSTGRES_PASSWORD: 'correct horse' },
      POSTGRES_INITDB_ARGS: '--auth-local=scram-sha-256',
    };
    await node.deploy([aDatabaseDeploy({ env })]);
    expect((await node.reeve('reconcile')).status).toBe(0);
    const psql = (sql: string): Promise<string> =>
      askDocker(engineSocket(), [
        ...['exec', '-e', 'PGPASSWORD=correct horse', `launchpad_${project}_db_0`],
        ...['psql', '-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-U', 'chief', '-d', 'shop', '-c', sql],
      ]);
    await expect.poll(() => psql('SELECT 1').catch(() => ''), { timeout: 60_000 }).toBe('1\n');
    await psql(
      "CREATE ROLE app; ALTER ROLE chief PASSWORD 'correct horse'; CREATE TABLE t AS SELECT 1 AS n; ALTER TABLE t OWNER TO app",
    );
    expect((await node.reeve('backup', '--now')).status).toBe(0);
    const verified = await node.reeve('backup', 'verify', '--restore');
    expect([verified.status, verified.stdout]).toEqual([
      0,
      expect.stringContaining('"shop": restored: 1 tables'),
    ]);
    await psql('DROP TABLE t; DROP ROLE app');
    const end = await node.reeve('backup', 'restore', `${project}/db`, 'shop', '--globals');
    expect(end.status, end.stderr).toBe(0);
    expect(await psql("SELECT tableowner FROM pg_tables WHERE tablename = 't'")).toBe('app\n');
  });
});
