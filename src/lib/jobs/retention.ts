// Letting go of ended jobs: they are for people, and nothing of ours reads an old one. The lock of a job goes with its records, or
// there would be ever more files of them, and only while it is held: nobody else has it then, and who waits for it takes another.
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { BaseContext } from '../context.ts';
import { BusyError, describeError } from '../errors.ts';
import { acquireLock } from '../lock/flock.ts';
import { jobLock } from '../lock/names.ts';
import { listEndedJobs } from './book.ts';
import { endedJobsDir } from './records.ts';

const keptJobs = 200;
const keptMs = 7 * 24 * 60 * 60_000;

export type EndedJob = { key: string; endedAtMs: number };

/** Pure: all but the last ones, and those of the future, as a clock that went back has them, are among the last. */
export function planForgotten(jobs: readonly EndedJob[], now: Date): string[] {
  const newestFirst = [...jobs].sort((a, b) => b.endedAtMs - a.endedAtMs || (a.key < b.key ? -1 : 1));
  return newestFirst
    .filter((job, index) => index >= keptJobs || now.getTime() - job.endedAtMs > keptMs)
    .map((job) => job.key);
}

type RetentionContext = Pick<BaseContext, 'paths' | 'clock' | 'log' | 'runId' | 'command'>;

/**
 * How many went, of those that may go: a job whose container is left is known by its records alone. What somebody has stays;
 * what cannot be removed is told and left.
 */
export async function forgetEndedJobs(ctx: RetentionContext, mayGo: ReadonlySet<string>): Promise<number> {
  const directory = endedJobsDir(ctx.paths);
  const jobs: EndedJob[] = [];
  for (const key of await listEndedJobs(ctx)) {
    const about = await stat(join(directory, key)).catch(() => undefined);
    if (about !== undefined) jobs.push({ key, endedAtMs: about.mtimeMs });
  }
  let count = 0;
  for (const key of planForgotten(jobs, ctx.clock.now())) {
    if (!mayGo.has(key)) continue;
    try {
      await forget(ctx, key);
      count += 1;
    } catch (error) {
      if (error instanceof BusyError) continue;
      ctx.log.warning(`cannot forget job ${key}: ${describeError(error)}`);
    }
  }
  return count;
}

async function forget({ paths, runId, command, clock }: RetentionContext, key: string): Promise<void> {
  const lock = await acquireLock(paths.locksDir, jobLock(key), { command: `reeve ${command}`, runId, clock });
  try {
    await rm(join(endedJobsDir(paths), key), { recursive: true, force: true });
    lock.retire();
  } finally {
    lock.release();
  }
}
