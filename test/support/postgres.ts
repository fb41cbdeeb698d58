// Real PostgreSQL servers in containers, with the image of scripts/postgres.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { docker } from './engine.ts';

export const postgresImage = 'reeve-test/postgres:15';
const script = join(import.meta.dirname, '../../scripts/postgres');

/** Makes `postgresImage` in the engine where it is missing; the first time on a machine that takes a minute or two. */
export function buildPostgresImage(socket: string): void {
  const { status, stderr } = spawnSync(script, [socket], { encoding: 'utf8', timeout: 300_000 });
  if (status !== 0) throw new Error(`${script} ended with ${status}:\n${stderr}`);
}

/** Rows as psql prints them without frills, of a statement as the superuser. */
export function psql(socket: string, container: string, database: string, sql: string): string {
  const argv = ['psql', '-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-U', 'postgres', '-c', sql];
  return docker(socket, ['exec', '-e', `PGDATABASE=${database}`, container, ...argv]).trimEnd();
}
