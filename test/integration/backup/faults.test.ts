// What goes wrong with a backup: each time it is told, nothing of it looks like a backup, and the next run is as good as ever.
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { captureDump } from '../../../src/lib/backup/dump/capture.ts';
import { type DumpLimits, defaultLimits } from '../../../src/lib/backup/engine.ts';
import { postgres } from '../../../src/lib/backup/postgres/engine.ts';
import { collectAfterAll } from '../../support/after-all.ts';
import {
  aDatabaseDeploy,
  findRemains,
  holdTable,
  lastStamp,
  listBackups,
  makeDue,
  nothingLeft,
  openDatabase,
  readDump,
  replaceDump,
  restoreDump,
  startDatabase,
  type TestDatabase,
} from '../../support/database-service.ts';
import { engineSocket } from '../../support/engine.ts';
import { makeNode, type ReeveEnd, type TestNode } from '../../support/node.ts';
import { buildPostgresImage, imageMs } from '../../support/postgres.ts';
import { makeTempDir } from '../../support/temp.ts';

const whenDone = collectAfterAll();
beforeAll(() => buildPostgresImage(engineSocket()), imageMs);

const dumpsOf = (node: TestNode): string[] => listBackups(node).filter((path) => path.endsWith('Z.sql.gz'));

describe('a backup of three databases', () => {
  let node: TestNode;
  let db: TestDatabase;
  const at = (database: string): string => `default/three/db/${database}/${lastStamp}.sql.gz`;

  beforeAll(async () => {
    node = makeNode({ project: 'three', onTestFinished: whenDone });
    db = await startDatabase(node);
    for (const name of ['one', 'two', 'three']) {
      await db.psql(`CREATE DATABASE ${name}`);
      await db.psql('CREATE TABLE t AS SELECT generate_series(1, 5000) AS i', name);
    }
  });
  beforeEach(async () => {
    await restoreDump(db);
    rmSync(join(node.stateDir, 'backups'), { recursive: true, force: true });
    makeDue(node);
  });

  const run = (...flags: string[]): Promise<ReeveEnd> => node.reeve('backup', ...flags);

  async function expectGood(): Promise<void> {
    await restoreDump(db);
    makeDue(node);
    const end = await run('--json');
    expect([end.status, end.json().outcome], end.stdout).toEqual([0, 'done']);
    expect(dumpsOf(node)).toEqual([at('one'), at('three'), at('two')]);
    expect(await findRemains(node, db)).toEqual(nothingLeft);
  }

  it('of which one is damaged has the others, and tells how old its last good one is (O6, O21, R53, L80)', async () => {
    await expectGood();
    const path = await db.psql("CHECKPOINT; SELECT pg_relation_filepath('t')", 'two');
    const file = `/var/lib/postgresql/data/${path.split('\n').at(-1)}`;
    await db.exec('mv', file, `${file}.aside`);
    for (let round = 1; round <= 3; round++) {
      rmSync(join(node.stateDir, 'backups'), { recursive: true, force: true });
      makeDue(node);
      const end = await run();
      expect([end.status, dumpsOf(node)]).toEqual([1, [at('one'), at('three')]]);
      expect(end.stdout).toMatch(
        /^three\/db "two": failed: .*could not open file.*; its last good backup is .* old$/m,
      );
    }
    const status = await node.reeve('status');
    expect(status.status).toBe(1);
    expect(status.stdout).toMatch(/three\/db +"two" +.* ago +.* readable +.*could not open file/);
    expect(status.stdout).toMatch(/three\/db +"one" +.* ago +[^ ]+ k?B +readable *$/m);
    await db.exec('mv', `${file}.aside`, file);
    await expectGood();
    expect((await node.reeve('status')).status).toBe(0);
  });

  it.each([
    ['nothing', 'exit 0', 'the dump is empty: it has no bytes'],
    ['an empty stream', 'gzip </dev/null', 'the dump is empty: nothing is in it'],
    [
      'half a stream',
      'real=$(dirname "$0")/real; "$real" "$@" | head -c 300; exit 0',
      'the dump is cut or damaged',
    ],
    ['something else', 'echo hello', 'the dump is cut or damaged: incorrect header check'],
    ['more than a stream', '"$(dirname "$0")/real" "$@"; echo more', 'the dump is cut or damaged'],
    [
      'an error after a while',
      '"$(dirname "$0")/real" "$@" | head -c 300; echo "pg_dump: error: gone" >&2; exit 1',
      'pg_dump: error: gone',
    ],
  ])(
    'whose pg_dump gives %s has failed, and nothing has its name (O1, O2, R53, L80)',
    async (_, script, told) => {
      await replaceDump(db, script);
      const end = await run();
      expect([end.status, dumpsOf(node)]).toEqual([1, []]);
      expect(end.stdout).toContain(told);
      expect(listBackups(node).filter((path) => path.endsWith('manifest.json'))).toEqual([]);
      expect(await findRemains(node, db)).toEqual(nothingLeft);
      await expectGood();
    },
  );

  it('has the bytes as they are, and nothing of what its pg_dump says beside them (O8)', async () => {
    await replaceDump(db, `echo 'a warning' >&2; printf '\\r\\n\\000\\377' | gzip`);
    expect((await run()).status).toBe(0);
    expect(Buffer.from(readDump(node, at('one')), 'utf8').subarray(0, 3)).toEqual(Buffer.from([13, 10, 0]));
    await expectGood();
  });

  it('whose pg_dump is older than the server is not begun, and both versions are told (O10)', async () => {
    await replaceDump(db, '');
    await db.exec(
      'sh',
      '-c',
      `printf '#!/bin/sh\\necho "pg_dump (PostgreSQL) 14.9 (Debian 14.9-1)"\\n' > "$(command -v pg_dump)"`,
    );
    const end = await run();
    expect([end.status, dumpsOf(node)]).toEqual([1, []]);
    expect(end.stdout).toMatch(/pg_dump in the container is 14\.9, older than the server, which is 15\.\d+/);
    await expectGood();
  });

  it('is not begun where its last one would not fit, and is made once there is room (O16, R53)', async () => {
    const directory = join(node.stateDir, 'dump-tmp');
    mkdirSync(directory, { recursive: true });
    const mount = (size: string): void => {
      const { status, stderr } = spawnSync(
        'mount',
        ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', directory],
        { encoding: 'utf8' },
      );
      if (status !== 0) throw new Error(stderr);
    };
    mount('1m');
    whenDone(() => void spawnSync('umount', [directory]));
    const full = await run();
    expect([full.status, dumpsOf(node)]).toEqual([1, []]);
    expect(full.stdout).toMatch(/"one": failed: ENOSPC: 1 MB are free in ".*dump-tmp"/);
    spawnSync('umount', [directory]);
    // Large enough to begin, and too small for what comes: it is ended before others have no room left.
    mount('12m');
    await db.psql(
      'CREATE TABLE big AS SELECT gen_random_uuid() AS a, gen_random_uuid() AS b FROM generate_series(1, 500000)',
      'two',
    );
    makeDue(node);
    const half = await run();
    expect([half.status, dumpsOf(node)]).toEqual([1, [at('one'), at('three')]]);
    expect(half.stdout).toMatch(/"two": failed: ENOSPC: .* MB are free in ".*dump-tmp"/);
    expect(await findRemains(node, db)).toEqual(nothingLeft);
    spawnSync('umount', [directory]);
    await db.psql('DROP TABLE big', 'two');
    await expectGood();
  });

  it('whose store is not there has failed, and is as good as ever once it is', async () => {
    writeFileSync(join(node.stateDir, 'backups'), 'no directory');
    const end = await run();
    expect(end.status).toBe(1);
    expect(end.stdout).toMatch(/failed: cannot make ".*backups": EEXIST/);
    expect(await findRemains(node, db)).toEqual(nothingLeft);
    rmSync(join(node.stateDir, 'backups'));
    await expectGood();
  });

  it('ends what hangs, in the container as well, though it ignores being told (O7, R59)', async () => {
    await replaceDump(db, "trap '' TERM HUP PIPE; printf x; while :; do sleep 1000; done");
    const limits: DumpLimits = { ...defaultLimits, idleMs: 8000 };
    const server = openServer(limits);
    const dump = server.dumpDatabase('one');
    const file = join(makeTempDir(), 'dump');
    await expect(captureDump(file, dump.chunks)).rejects.toThrow('nothing came for 8s');
    expect((await findRemains(node, db))['processes']).not.toBe('');
    await dump.close('failed');
    expect(await findRemains(node, db)).toEqual(nothingLeft);
    await expectGood();
  });

  it('gives up a dump that goes on for too long (O7)', async () => {
    await replaceDump(db, '(while :; do head -c 100000 /dev/urandom; sleep 0.1; done) | gzip -1');
    const dump = openServer({ ...defaultLimits, dumpMs: 2000 }).dumpDatabase('one');
    await expect(captureDump(join(makeTempDir(), 'dump'), dump.chunks)).rejects.toThrow('no end within 2s');
    await dump.close('failed');
    expect(await findRemains(node, db)).toEqual(nothingLeft);
  });

  it('says that something may be left where it cannot tell, and the next run ends it (O7)', async () => {
    await replaceDump(db, "trap '' TERM HUP PIPE; printf x; while :; do sleep 1000; done");
    const dump = openServer({ ...defaultLimits, idleMs: 8000 }).dumpDatabase('one');
    await expect(captureDump(join(makeTempDir(), 'dump'), dump.chunks)).rejects.toThrow('nothing came');
    await db.exec('mv', '/usr/bin/grep', '/usr/bin/grep.aside');
    await expect(dump.close('failed')).rejects.toThrow('orphan-possible');
    await db.exec('mv', '/usr/bin/grep.aside', '/usr/bin/grep');
    expect((await findRemains(node, db))['processes']).not.toBe('');
    await expectGood();
  });

  it('gives up a table that somebody else has locked, and tells which (O7)', async () => {
    const release = await holdTable(db, { database: 'one', table: 't' });
    const dump = openServer({ ...defaultLimits, lockMs: 1000 }).dumpDatabase('one');
    const failure = await captureDump(join(makeTempDir(), 'dump'), dump.chunks).catch(
      (error: unknown) => error,
    );
    expect(String((failure as { lastLines?: string }).lastLines)).toContain(
      'canceling statement due to lock timeout',
    );
    await dump.close('failed');
    await release();
    await expectGood();
  });

  function openServer(limits: DumpLimits) {
    const container = { id: db.container, env: ['POSTGRES_PASSWORD=correct horse'] };
    const signal = new AbortController().signal;
    return postgres.open({ socket: engineSocket(), container, runId: 'test-run', signal, limits });
  }

  it('told to stop ends its dump, records nothing, and is made by the next run (R59)', async () => {
    await replaceDump(db, 'printf x; sleep 1000');
    const stopped = node.start(['backup']);
    await expect
      .poll(() => findRemains(node, db).then((remains) => remains['processes']), { timeout: 30_000 })
      .not.toBe('');
    stopped.child.kill('SIGTERM');
    expect((await stopped.end).status).toBe(143);
    expect([dumpsOf(node), await findRemains(node, db)]).toEqual([[], nothingLeft]);
    await restoreDump(db);
    expect((await run('--json')).json().outcome).toBe('done');
  });
});

it('with a wrong password has failed for good, and the password is not told (O1, L86)', async () => {
  const node = makeNode({ project: 'locked' });
  const env = { POSTGRES_PASSWORD: 'first password', POSTGRES_INITDB_ARGS: '--auth-local=scram-sha-256' };
  const db = await startDatabase(node, { env });
  const argv = ['psql', '-X', '-U', 'postgres', '-c', 'CREATE DATABASE app'];
  await db.exec('env', 'PGPASSWORD=first password', ...argv);
  const good = await node.reeve('backup', '--now');
  expect([good.status, dumpsOf(node).length]).toEqual([0, 1]);
  await node.deploy([aDatabaseDeploy({ env: { ...env, POSTGRES_PASSWORD: 'second password' } })]);
  expect((await node.reeve('reconcile')).status).toBe(0);
  const before = listBackups(node);
  const replaced = openDatabase(node, (await node.containers())[0]?.name ?? '');
  await expect
    .poll(() => replaced.exec('pg_isready').then(() => 'ready', String), { timeout: 60_000 })
    .toBe('ready');
  const end = await node.reeve('backup', '--now');
  expect([end.status, listBackups(node)]).toEqual([1, before]);
  expect(end.stdout).toContain('password authentication failed for user "postgres"');
  expect(end.stdout + end.stderr).not.toContain('second password');
  // What it had stays what it is.
  const { services } = node.state('backups.json') as {
    services: Record<string, { databases: Record<string, { lastSuccessAt: string }> }>;
  };
  expect(services['locked/db']?.databases['app']?.lastSuccessAt).toMatch(/^\d{4}-/);
  expect(
    statSync(join(node.stateDir, 'backups', before.find((path) => path.endsWith('Z.sql.gz')) ?? '')).size,
  ).toBeGreaterThan(0);
});
