// The processes that run open jobs, as far as this activation starts them: units where there are some, else children that are
// waited for. A child that a signal ends is started again; one that could not finish waits, longer each time.
import type { BaseContext } from '../context.ts';
import { describeError } from '../errors.ts';
import { hasUnits } from '../exec/own.ts';
import { ExitCode } from '../exit-codes.ts';
import { type BackoffPolicy, planBackoffMs } from '../http/retry.ts';
import { listOpenJobs } from '../jobs/book.ts';
import { spawnJob, startJobUnit } from '../jobs/start.ts';
import { listHeldLocks } from '../lock/list-locks.ts';
import { jobLock } from '../lock/names.ts';

export type Runners = {
  /** Starts the job now, whatever it waited for. */
  start(key: string): Promise<void>;
  /** Starts those open jobs again that nobody has and whose wait is over. */
  tend(): Promise<void>;
  /** Waits for all children, and starts those again that were killed. Without children it ends at once. */
  settle(): Promise<void>;
  /** Jobs that a child of ours could not finish, by key. */
  readonly unfinished: ReadonlyMap<string, string>;
};

type RunnerContext = Pick<BaseContext, 'paths' | 'clock' | 'log' | 'signal'>;

const retryPolicy: BackoffPolicy = { firstMs: 2_000, capMs: 60_000, jitter: 0.5 };
const killPolicy: BackoffPolicy = { firstMs: 100, capMs: 10_000, jitter: 0.5 };
/** Whatever kills it so often in a row will do it again: then the job waits longer. */
const mostKills = 10;
/** As in its unit. */
const stopTimeoutMs = 60_000;
/** A job that another process has is looked at no sooner: the look goes through all processes, or takes its lock for a moment. */
const heldMs = 10_000;
/** A unit that has been asked for needs a moment until it has its lock. */
const graceMs = 10_000;

type Attempt = { starts: number; notBeforeMs: number };

export function openRunners(ctx: RunnerContext, random: () => number, stopMs = stopTimeoutMs): Runners {
  const withUnits = hasUnits();
  const running = new Map<string, Promise<void>>();
  const attempts = new Map<string, Attempt>();
  const unfinished = new Map<string, string>();

  const postpone = (key: string): void => {
    const starts = (attempts.get(key)?.starts ?? 0) + 1;
    const waitMs = planBackoffMs(retryPolicy, starts, random());
    attempts.set(key, { starts, notBeforeMs: performance.now() + waitMs });
  };
  const runChild = async (key: string): Promise<void> => {
    const why = await runUntilEnded(ctx, key, { random, stopMs });
    if (why === undefined) unfinished.delete(key);
    else {
      unfinished.set(key, why);
      postpone(key);
    }
  };
  const start = async (key: string): Promise<void> => {
    if (running.has(key)) return;
    if (withUnits) {
      postpone(key);
      const attempt = attempts.get(key);
      if (attempt !== undefined) {
        attempt.notBeforeMs = Math.max(attempt.notBeforeMs, performance.now() + graceMs);
      }
      await startJobUnit(ctx, key);
      return;
    }
    const child = runChild(key)
      .catch((error: unknown) => {
        unfinished.set(key, describeError(error));
        postpone(key);
      })
      .finally(() => running.delete(key));
    running.set(key, child);
  };
  const tend = async (): Promise<void> => {
    const due = (await listOpenJobs(ctx)).filter(
      (key) => !running.has(key) && (attempts.get(key)?.notBeforeMs ?? 0) <= performance.now(),
    );
    const held = await listHeldLocks(ctx.paths.locksDir, due.map(jobLock));
    for (const key of due) {
      if (held.has(jobLock(key))) {
        attempts.set(key, { starts: 0, notBeforeMs: performance.now() + heldMs });
        continue;
      }
      await start(key).catch((error: unknown) => {
        ctx.log.error(`cannot start job ${key}: ${describeError(error)}`, { job: key });
        postpone(key);
      });
    }
  };
  const settle = async (): Promise<void> => {
    while (running.size > 0) await Promise.race(running.values());
  };
  return { start, tend, settle, unfinished };
}

/** Why the job is not finished; undefined where it is, or is in other hands. */
async function runUntilEnded(
  ctx: RunnerContext,
  key: string,
  { random, stopMs }: { random: () => number; stopMs: number },
): Promise<string | undefined> {
  for (let kills = 1; ; kills += 1) {
    const { status, signal } = await waitForChild(ctx, key, stopMs);
    if (signal === undefined) {
      const isOver = status === ExitCode.done || status === ExitCode.busy;
      return isOver ? undefined : `exit status ${status}`;
    }
    if (ctx.signal.aborted) return signal;
    if (kills >= mostKills) return `${signal}, ${kills} times`;
    ctx.log.warning(`the process of job ${key} was ended by ${signal}: another one goes on`, { job: key });
    await ctx.clock.sleep(planBackoffMs(killPolicy, kills, random()), ctx.signal);
  }
}

type ChildEnd = { status: number | undefined; signal: NodeJS.Signals | undefined };

/** A stop is handed on: a job's own process writes down where it is, and its container goes on. One that hangs is killed. */
async function waitForChild(ctx: RunnerContext, key: string, stopMs: number): Promise<ChildEnd> {
  const child = spawnJob(ctx, key);
  let deadline: NodeJS.Timeout | undefined;
  const stop = (): void => {
    child.kill('SIGTERM');
    deadline = setTimeout(() => void child.kill('SIGKILL'), stopMs);
  };
  if (ctx.signal.aborted) stop();
  ctx.signal.addEventListener('abort', stop);
  try {
    return await new Promise<ChildEnd>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (status, signal) => {
        resolve({ status: status ?? undefined, signal: signal ?? undefined });
      });
    });
  } finally {
    clearTimeout(deadline);
    ctx.signal.removeEventListener('abort', stop);
  }
}
