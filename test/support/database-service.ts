// A database service of a test node: PostgreSQL in a container that reeve has made, with backups into a directory.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { type Manifest, parseManifest } from '../../src/lib/backup/manifest.ts';
import { until } from './balanced.ts';
import { askDocker, type TestNode } from './node.ts';
import { postgresImage } from './postgres.ts';

/** As a deploy file has it. The schedule fires in the first minute of a year, unless another is named. */
export function aDatabaseDeploy(overrides: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    service: 'db',
    image: postgresImage,
    memory: 512,
    env: { POSTGRES_PASSWORD: 'correct horse' },
    database: { engine: 'postgres', version: '15' },
    backup: { schedule: '0 0 1 1 *', retentionDays: 7 },
    volumes: [{ name: 'data', path: '/var/lib/postgresql/data' }],
    rollout: { stopGrace: '10s' },
    ...overrides,
  };
}

export type TestDatabase = {
  readonly container: string;
  /** Statements as the superuser, on the socket. */
  psql(sql: string, database?: string): Promise<string>;
  /** A program in the container. */
  exec(...argv: string[]): Promise<string>;
};

/** Deploys it, reconciles, and waits until it takes connections. */
export async function startDatabase(
  node: TestNode,
  overrides: Readonly<Record<string, unknown>> = {},
): Promise<TestDatabase> {
  await node.deploy([aDatabaseDeploy(overrides)]);
  const end = await node.reeve('reconcile');
  if (end.status !== 0) throw new Error(`reconcile exited ${end.status}:\n${end.stdout}${end.stderr}`);
  const database = openDatabase(node, `launchpad_${node.project}_${String(overrides['service'] ?? 'db')}_0`);
  await waitForDatabase(database);
  return database;
}

export function openDatabase(node: TestNode, container: string): TestDatabase {
  const exec = (...argv: string[]): Promise<string> => askDocker(node.socket, ['exec', container, ...argv]);
  return {
    container,
    exec,
    psql: async (sql, database = 'postgres') => {
      const argv = ['psql', '-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-U', 'postgres', '-c', sql];
      // Whatever the container has of such variables is not for this.
      const variables = [
        `PGDATABASE=${database}`,
        'PGPASSWORD=correct horse',
        'PGOPTIONS=',
        'PGCLIENTENCODING=UTF8',
      ];
      const env = variables.flatMap((variable) => ['-e', variable]);
      return (await askDocker(node.socket, ['exec', ...env, container, ...argv])).trimEnd();
    },
  };
}

export async function waitForDatabase({ exec }: TestDatabase): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      await exec('pg_isready', '-q');
      return;
    } catch (error) {
      if (tries > 300) throw error;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}

/** Somebody has a whole table to himself when this resolves; gives how he lets go of it. */
export async function holdTable(
  { psql }: TestDatabase,
  { database, table }: { database: string; table: string },
): Promise<() => Promise<void>> {
  const held = psql(`BEGIN; LOCK TABLE ${table}; SELECT pg_sleep(300)`, database).catch(() => '');
  const locks = "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted";
  await until(async () => (await psql(`${locks} AND relation IS NOT NULL`)) !== '0', 60_000);
  return async () => {
    const holder = "query LIKE '%pg_sleep(300)%' AND pid <> pg_backend_pid()";
    await psql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${holder}`);
    await held;
  };
}

/** How many sessions wait for a lock. */
export const waitingSql = 'SELECT count(*) FROM pg_locks WHERE NOT granted';

const bin = '/usr/lib/postgresql/15/bin';

/** Puts a script in the place of pg_dump, which is beside it as `real`. It is not asked for a version. */
export async function replaceDump({ exec }: TestDatabase, script: string): Promise<void> {
  await exec('sh', '-c', `[ -e ${bin}/real ] || mv ${bin}/pg_dump ${bin}/real`);
  const version = 'case "$1" in --version | -V) exec "$(dirname "$0")/real" "$1";; esac';
  const write = `printf '%s' "$1" > ${bin}/pg_dump; chmod 755 ${bin}/pg_dump`;
  await exec('sh', '-c', write, 'sh', `#!/bin/sh\n${version}\n${script}\n`);
}

export async function restoreDump({ exec }: TestDatabase): Promise<void> {
  await exec('sh', '-c', `[ ! -e ${bin}/real ] || mv ${bin}/real ${bin}/pg_dump`);
}

/** Files below the directory that backups of a test node go to, by path; none while nothing was written. */
export function listBackups(node: TestNode, directory: string = join(node.stateDir, 'backups')): string[] {
  if (!existsSync(directory)) return [];
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
  // The store's own lock is nobody's backup.
  return files
    .map((file) => file.slice(directory.length + 1))
    .filter((file) => !file.startsWith('.locks/'))
    .sort();
}

export function readDump(node: TestNode, path: string): string {
  return gunzipSync(readFileSync(join(node.stateDir, 'backups', path))).toString();
}

export function readManifest(node: TestNode, path: string): Manifest {
  const parsed = parseManifest(readFileSync(join(node.stateDir, 'backups', path), 'utf8'));
  if ('fault' in parsed) throw new Error(`${path}: ${parsed.fault}`);
  return parsed.value;
}

/** The instant that the schedule of `aDatabaseDeploy` fired at last. */
export const lastFire = new Date(Date.UTC(new Date().getUTCFullYear(), 0, 1));
export const lastStamp = lastFire.toISOString().replace('.000', '').replaceAll(':', '-');

/** Makes the last fire one that has not been followed yet. */
export function makeDue(node: TestNode, service = 'db'): void {
  const known = existsSync(join(node.stateDir, 'backups.json')) ? (node.state('backups.json') as object) : {};
  const anchors = { [`backup:${node.project}/${service}`]: lastFire.getTime() - 60_000 };
  node.writeState('backups.json', { version: 1, services: {}, ...known, anchors });
}

/** What runs of dumps in the container and in the server, and what lies about of them here. */
export async function findRemains(node: TestNode, database: TestDatabase): Promise<Record<string, string>> {
  const find = 'grep -lsF PGAPPNAME=reeve-backup- /proc/[0-9]*/environ; true';
  const processes = await database.exec('sh', '-c', find);
  return {
    processes,
    sessions: await countSessions(database, processes === '' ? 20 : 1),
    files: findDumpFiles(node),
  };
}

/** A server notices a moment later that a client has gone. */
async function countSessions(database: TestDatabase, tries: number): Promise<string> {
  const left = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'reeve-%'";
  const count = await database.psql(left);
  if (count === '0' || tries === 1) return count;
  await new Promise((resolve) => setTimeout(resolve, 100));
  return await countSessions(database, tries - 1);
}

/** Names of dumps that are on their way to the store. */
export function findDumpFiles(node: TestNode): string {
  const directory = join(node.stateDir, 'dump-tmp');
  return existsSync(directory) ? readdirSync(directory).join(' ') : '';
}

export const nothingLeft = { processes: '', sessions: '0', files: '' };
