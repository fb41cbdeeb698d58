// Real PostgreSQL servers in containers, with the image of scripts/postgres.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

export const postgresImage = 'reeve-test/postgres:15';
const script = join(import.meta.dirname, '../../scripts/postgres');

/** For whoever may be the first to make it. */
export const imageMs = 400_000;

/** Makes `postgresImage` in the engine where it is missing; the first time on a machine that takes a minute or two. */
export function buildPostgresImage(socket: string): void {
  const { status, stderr } = spawnSync(script, [socket], { encoding: 'utf8', timeout: 300_000 });
  if (status !== 0) throw new Error(`${script} ended with ${status}:\n${stderr}`);
}
