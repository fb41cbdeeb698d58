// What `backup verify` finds: what can be read, what can be restored, and what is broken and why. With a real PostgreSQL.
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { TableRows } from '../../../src/lib/backup/manifest.ts';
import { collectAfterAll } from '../../support/after-all.ts';
import { until } from '../../support/balanced.ts';
import { listBackups, startDatabase, type TestDatabase } from '../../support/database-service.ts';
import { engineSocket } from '../../support/engine.ts';
import { askDocker, makeNode, type ReeveEnd, type TestNode } from '../../support/node.ts';
import { buildPostgresImage, imageMs } from '../../support/postgres.ts';
import { forgeDump, listScratch, listVolumes, richSql } from '../../support/restored.ts';

const whenDone = collectAfterAll();

type Verified = {
  outcome: string;
  services: {
    set: string | null;
    error?: string;
    globals?: { level: string | null; error?: string };
    databases: { name: string; level: string | null; error?: string; tables?: number; rows?: number }[];
    notes: string[];
  }[];
};
const answerOf = (end: ReeveEnd): Verified => end.json() as unknown as Verified;

describe('a look at the backups of a real PostgreSQL', () => {
  let node: TestNode;
  let db: TestDatabase;
  let stamp: string;
  /** Of the service's backups, below the directory of all. */
  let prefix: string;
  const path = (name: string): string => join(node.stateDir, 'backups', prefix, name);
  const evidence = (): unknown => JSON.parse(readFileSync(path(`_sets/${stamp}/evidence.json`), 'utf8'));
  const verify = async (...flags: string[]): Promise<{ status: number | null; answer: Verified }> => {
    const end = await node.reeve('backup', 'verify', '--json', ...flags);
    expect(end.stdout, end.stderr).not.toBe('');
    return { status: end.status, answer: answerOf(end) };
  };
  const levels = (answer: Verified): Record<string, string | null> =>
    Object.fromEntries((answer.services[0]?.databases ?? []).map(({ name, level }) => [name, level]));

  beforeAll(async () => {
    buildPostgresImage(engineSocket());
    node = makeNode({ onTestFinished: whenDone });
    db = await startDatabase(node);
    await db.psql('CREATE DATABASE shop');
    await db.psql('CREATE DATABASE nothing');
    for (const statement of richSql) await db.psql(statement, 'shop');
    const end = await node.reeve('backup', '--now', '--json');
    expect(end.status, end.stderr).toBe(0);
    const manifest = listBackups(node).find((file) => file.endsWith('manifest.json')) ?? '';
    stamp = manifest.split('/').at(-2) ?? '';
    prefix = manifest.split('/_sets/')[0] ?? '';
  }, imageMs);

  it('reads every object to its end, and says so beside the manifest (O12)', async () => {
    const before = readFileSync(path(`_sets/${stamp}/manifest.json`));
    const { status, answer } = await verify();
    expect({ status, outcome: answer.outcome, levels: levels(answer) }).toEqual({
      status: 0,
      outcome: 'done',
      levels: { nothing: 'readable', shop: 'readable' },
    });
    expect(answer.services[0]?.globals).toEqual({ level: 'readable' });
    expect(evidence()).toMatchObject({
      version: 1,
      databases: [{ level: 'readable' }, { level: 'readable' }],
    });
    expect(readFileSync(path(`_sets/${stamp}/manifest.json`))).toEqual(before);
  });

  it('restores them into a server of its own, and counts what is there (L77, O8)', async () => {
    const volumes = await listVolumes(engineSocket());
    const { status, answer } = await verify('--restore');
    expect(answer.services[0], JSON.stringify(answer)).toMatchObject({
      globals: { level: 'restored' },
      databases: [
        { name: 'nothing', level: 'restored', tables: 0, rows: 0 },
        { name: 'shop', level: 'restored', tables: 5, rows: 1019 },
      ],
    });
    expect(status).toBe(0);
    expect(evidence()).toMatchObject({ databases: [{ level: 'restored' }, { level: 'restored' }] });
    expect(node.state('backups.json')).toMatchObject({
      services: { 'blog/db': { databases: { shop: { level: 'restored', restoredAt: expect.any(String) } } } },
    });
    expect(await listScratch(engineSocket(), node.nodeId)).toEqual([]);
    expect(await listVolumes(engineSocket())).toEqual(volumes);
  });

  it('does not take back by reading what a restore has shown', async () => {
    expect(levels((await verify()).answer)).toEqual({ nothing: 'restored', shop: 'restored' });
  });

  it('takes no writes that go on meanwhile for a difference', async () => {
    let isOver = false;
    const writes = (async () => {
      while (!isOver)
        await db.psql("INSERT INTO public.raw SELECT n, '', '' FROM generate_series(1, 100) n", 'shop');
    })();
    const { status, answer } = await verify('--restore');
    isOver = true;
    await writes;
    expect({ status, levels: levels(answer) }).toEqual({
      status: 0,
      levels: { nothing: 'restored', shop: 'restored' },
    });
  });

  describe('of a set that is not as it was', () => {
    const saved = new Map<string, Buffer>();
    beforeAll(() => {
      for (const file of listBackups(node))
        saved.set(file, readFileSync(join(node.stateDir, 'backups', file)));
    });
    afterEach(() => {
      for (const [file, bytes] of saved) writeFileSync(join(node.stateDir, 'backups', file), bytes);
    });
    const manifest = (): string => path(`_sets/${stamp}/manifest.json`);
    const forge = (sql: string, rows: TableRows[] = []): void =>
      forgeDump(join(node.stateDir, 'backups'), manifest(), { database: 'shop', sql, rows });
    const finding = (answer: Verified): object =>
      answer.services[0]?.databases.find(({ name }) => name === 'shop') ?? {};

    it.each([10, 60, 99])('finds a dump that is cut at %i percent (O2, O4)', async (percent) => {
      const bytes = readFileSync(path(`shop/${stamp}.sql.gz`));
      writeFileSync(
        path(`shop/${stamp}.sql.gz`),
        bytes.subarray(0, Math.floor((bytes.length * percent) / 100)),
      );
      for (const flags of [[], ['--restore']]) {
        const { status, answer } = await verify('--service', 'blog/db', ...flags);
        expect({ status, levels: levels(answer) }).toMatchObject({ status: 1, levels: { shop: 'broken' } });
        expect(finding(answer)).toMatchObject({
          error: expect.stringContaining('the dump is cut or damaged'),
        });
      }
      expect(evidence()).toMatchObject({ databases: [{ level: 'restored' }, { level: 'broken' }] });
      expect(node.state('backups.json')).toMatchObject({
        services: { 'blog/db': { databases: { shop: { level: 'broken' }, nothing: { level: 'restored' } } } },
      });
    });

    it.each([
      ['nothing', Buffer.alloc(0), 'it has no bytes'],
      ['an empty stream', gzipSync(''), 'nothing is in it'],
      ['another dump', gzipSync('SELECT 1;'), 'it has 29 bytes, and'],
    ])('finds %s in the place of a dump (O2)', async (_, bytes, error) => {
      writeFileSync(path(`shop/${stamp}.sql.gz`), bytes);
      const { status, answer } = await verify();
      expect({ status, ...finding(answer) }).toMatchObject({
        ...{ status: 1, level: 'broken' },
        error: expect.stringContaining(error),
      });
    });

    it('finds a dump that is gone, and roles that are cut', async () => {
      rmSync(path(`shop/${stamp}.sql.gz`));
      truncateSync(path(`_sets/${stamp}/globals.sql.gz`), 30);
      const { status, answer } = await verify();
      expect({ status, ...finding(answer) }).toMatchObject({ level: 'broken', error: 'it is not there' });
      expect(answer.services[0]?.globals).toMatchObject({ level: 'broken' });
    });

    it('calls a dump that does not go in readable, and says why', async () => {
      forge('CREATE EXTENSION nowhere;\n');
      const { status, answer } = await verify('--restore');
      expect({ status, ...finding(answer) }).toMatchObject({
        ...{ status: 1, level: 'readable' },
        error: expect.stringContaining('extension "nowhere" is not available'),
      });
      expect(levels(answer)).toMatchObject({ nothing: 'restored' });
      expect(evidence()).toMatchObject({ databases: [{}, { level: 'readable', error: expect.anything() }] });
    });

    it('names each table that has not what was dumped', async () => {
      forge('CREATE TABLE a AS SELECT 1;\nCREATE TABLE c AS SELECT 1;\n', [
        { schema: 'public', table: 'a', rows: 2 },
        { schema: 'public', table: 'b', rows: 0 },
      ]);
      const { status, answer } = await verify('--restore');
      expect({ status, ...finding(answer) }).toMatchObject({
        ...{ status: 1, level: 'readable' },
        error:
          'it was restored and is not what was dumped: table "public"."a" has 1 rows, and 2 were dumped; table "public"."b" is missing; table "public"."c" was not dumped',
      });
    });

    it('restores with the image that the service has where that of the dump is gone, and says so', async () => {
      const document = {
        ...JSON.parse(readFileSync(manifest(), 'utf8')),
        imageId: `sha256:${'0'.repeat(64)}`,
      };
      writeFileSync(manifest(), JSON.stringify({ ...document, serverVersion: '14.2' }));
      const { status, answer } = await verify('--restore');
      expect({ status, levels: levels(answer), notes: answer.services[0]?.notes }).toEqual({
        status: 0,
        levels: { nothing: 'restored', shop: 'restored' },
        notes: [
          expect.stringMatching(/is no longer on this machine: restored with reeve-test\/postgres:15$/),
          expect.stringMatching(/^restored with version 15\.\d+, and dumped from 14\.2$/),
        ],
      });
    });

    it('has failed where the manifest cannot be understood', async () => {
      writeFileSync(manifest(), '{"version": 1}');
      const { status, answer } = await verify();
      expect({ status, error: answer.services[0]?.error }).toEqual({
        status: 1,
        error: expect.stringContaining(`cannot verify the set of ${stamp}: its manifest`),
      });
    });

    it('reads on and says that nothing was restored where there is no room', async () => {
      const directory = join(node.stateDir, 'dump-tmp');
      spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', directory]);
      const { status, answer } = await verify('--restore').finally(() => spawnSync('umount', [directory]));
      expect({ status, ...finding(answer) }).toMatchObject({
        ...{ status: 1, level: 'restored' },
        error: expect.stringMatching(/^it was not restored: ENOSPC: .* free in ".*dump-tmp"/),
      });
    });
  });

  it.each(['none', '2020-01-01T00-00-00Z'])('knows of no set %s', async (set) => {
    const end = await node.reeve('backup', 'verify', '--set', set);
    expect([end.status, end.stdout + end.stderr]).toEqual([
      set === 'none' ? 64 : 1,
      expect.stringContaining(set === 'none' ? 'names no set' : `there is no set of ${set}`),
    ]);
  });

  it('leaves neither container nor volume wherever it is killed, once it has run again', async () => {
    const volumes = await listVolumes(engineSocket());
    const takesConnections = (name: string): Promise<boolean> =>
      askDocker(engineSocket(), ['exec', name, 'pg_isready', '-h', '127.0.0.1']).then(Boolean, () => false);
    for (const [moment, delayMs] of [
      [async () => true, 0],
      [async () => true, 700],
      [takesConnections, 0],
      [takesConnections, 400],
    ] as const) {
      // Again where it was over before.
      for (let tries = 0; !(await killVerify(moment, delayMs)); tries += 1) expect(tries).toBeLessThan(5);
    }
    const { status, answer } = await verify('--restore');
    expect({ status, levels: levels(answer) }).toMatchObject({ status: 0, levels: { shop: 'restored' } });
    expect(await listScratch(engineSocket(), node.nodeId)).toEqual([]);
    expect(await listVolumes(engineSocket())).toEqual(volumes);
  }, 300_000);

  /** Once its own server is there and it is so, and a while after. False where it was over before. */
  async function killVerify(isSo: (name: string) => Promise<boolean>, delayMs: number): Promise<boolean> {
    const before = await listScratch(engineSocket(), node.nodeId);
    const run = node.start(['backup', 'verify', '--restore']);
    await until(async () => {
      if (run.child.exitCode !== null) return true;
      const names = await listScratch(engineSocket(), node.nodeId);
      const name = names.find((one) => !before.includes(one));
      return name !== undefined && (await isSo(name));
    }, 60_000);
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    run.child.kill('SIGKILL');
    return (await run.end).signal === 'SIGKILL';
  }

  it('removes its server at once where it is told to stop', async () => {
    const volumes = await listVolumes(engineSocket());
    const run = node.start(['backup', 'verify', '--restore']);
    await expect.poll(() => listScratch(engineSocket(), node.nodeId), { timeout: 60_000 }).toHaveLength(1);
    run.child.kill('SIGTERM');
    expect((await run.end).status).toBe(143);
    expect(await listScratch(engineSocket(), node.nodeId)).toEqual([]);
    expect(await listVolumes(engineSocket())).toEqual(volumes);
  });

  it('runs the server apart from everything, with the limits of the service and no label but its own', async () => {
    const run = node.start(['backup', 'verify', '--restore']);
    await expect.poll(() => listScratch(engineSocket(), node.nodeId), { timeout: 60_000 }).toHaveLength(1);
    const [name = ''] = await listScratch(engineSocket(), node.nodeId);
    const [about] = JSON.parse(await askDocker(engineSocket(), ['inspect', name]));
    expect((await run.end).status).toBe(0);
    expect({
      labels: Object.keys(about.Config.Labels),
      network: about.HostConfig.NetworkMode,
      ports: about.HostConfig.PortBindings,
      memory: about.HostConfig.Memory,
      mounts: about.Mounts.map(({ Type }: { Type: string }) => Type),
      env: about.Config.Env.filter((entry: string) => entry.includes('correct horse')),
    }).toEqual({
      ...{ labels: ['reeve.scratch'], network: 'none', ports: {}, memory: 512 * 1024 * 1024 },
      ...{ mounts: ['volume'], env: [] },
    });
  });
});
