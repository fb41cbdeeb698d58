// Letting go of ended jobs: they are for people, and nothing of ours reads an old one. The lock of a job goes with its records, as
// ids do not come again; nobody holds it, and whoever takes it just then notices that the file is another one.
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { BaseContext } from '../context.ts';
import { describeError } from '../errors.ts';
import { lockPath } from '../lock/flock.ts';
import { isLockHeld } from '../lock/list-locks.ts';
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

/** How many went. What cannot be removed is told and left. */
export async function forgetEndedJobs(ctx: Pick<BaseContext, 'paths' | 'clock' | 'log'>): Promise<number> {
  const directory = endedJobsDir(ctx.paths);
  const jobs: EndedJob[] = [];
  for (const key of await listEndedJobs(ctx)) {
    const about = await stat(join(directory, key)).catch(() => undefined);
    if (about !== undefined) jobs.push({ key, endedAtMs: about.mtimeMs });
  }
  let count = 0;
  for (const key of planForgotten(jobs, ctx.clock.now())) {
    try {
      if (await isLockHeld(ctx.paths.locksDir, jobLock(key))) continue;
      await rm(join(directory, key), { recursive: true, force: true });
      await rm(lockPath(ctx.paths.locksDir, jobLock(key)), { force: true });
      count += 1;
    } catch (error) {
      ctx.log.warning(`cannot forget job ${key}: ${describeError(error)}`);
    }
  }
  return count;
}
