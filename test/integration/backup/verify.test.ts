// What `backup verify` finds: what can be read, what can be restored, and what is broken and why. With a real PostgreSQL.
import { existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  listBackups,
  readManifest,
  startDatabase,
  type TestDatabase,
} from '../../support/database-service.ts';
import { engineSocket } from '../../support/engine.ts';
import { askDocker, makeNode, type ReeveEnd, type TestNode } from '../../support/node.ts';
import { buildPostgresImage } from '../../support/postgres.ts';
import { listScratch, listVolumes, richSql } from '../../support/restored.ts';

const hooks: (() => void | Promise<void>)[] = [];
afterAll(async () => {
  for (const hook of hooks.reverse()) await hook();
});

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
    node = makeNode({ onTestFinished: (clean) => hooks.push(clean) });
    db = await startDatabase(node);
    await db.psql('CREATE DATABASE shop');
    await db.psql('CREATE DATABASE nothing');
    for (const statement of richSql) await db.psql(statement, 'shop');
    const end = await node.reeve('backup', '--now', '--json');
    expect(end.status, end.stderr).toBe(0);
    const manifest = listBackups(node).find((file) => file.endsWith('manifest.json')) ?? '';
    stamp = manifest.split('/').at(-2) ?? '';
    prefix = manifest.split('/_sets/')[0] ?? '';
  });

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
});
