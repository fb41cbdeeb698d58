// Work done under locks. Enforces the one order within each flow of this process: from outer to inner, never back.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { BaseContext } from '../context.ts';
import { InternalError } from '../errors.ts';
import { acquireLock, type Lock } from './flock.ts';
import { compareLockNames, type LockName, mayTakeInside } from './names.ts';

export type LockContext = Pick<BaseContext, 'runId' | 'command' | 'clock' | 'signal'> & {
  readonly paths: Pick<BaseContext['paths'], 'locksDir'>;
};

/** The innermost lock of the flow that asks. Flows that run side by side hold locks independently of one another. */
const innermost = new AsyncLocalStorage<LockName>();

/** Runs the work under the lock and gives the lock back however the work ends. Throws BusyError if another holds it. */
export async function withLock<T>(
  ctx: LockContext,
  name: LockName,
  work: () => Promise<T>,
  options: { waitMs?: number } = {},
): Promise<T> {
  return await withLocks(ctx, [name], work, options);
}

/** The same under several locks, taken in the one order whatever the order of `names`. All or none. */
export async function withLocks<T>(
  ctx: LockContext,
  names: readonly LockName[],
  work: () => Promise<T>,
  options: { waitMs?: number } = {},
): Promise<T> {
  const sorted = [...names].sort(compareLockNames);
  requireOrder(sorted);
  const last = sorted.at(-1);
  if (last === undefined) return await work();
  const held: Lock[] = [];
  try {
    for (const name of sorted)
      held.push(await acquireLock(ctx.paths.locksDir, name, lockRequest(ctx, options)));
    return await innermost.run(last, work);
  } finally {
    for (const lock of held.reverse()) lock.release();
  }
}

function lockRequest(ctx: LockContext, options: { waitMs?: number }): Parameters<typeof acquireLock>[2] {
  const { runId, clock, signal } = ctx;
  return { ...options, command: `reeve ${ctx.command}`, runId, clock, signal };
}

function requireOrder(sorted: readonly LockName[]): void {
  let outer = innermost.getStore();
  for (const name of sorted) {
    if (outer !== undefined && !mayTakeInside(outer, name)) {
      throw new InternalError(`lock ${name} was asked for inside lock ${outer}`, { code: 'lock-order' });
    }
    outer = name;
  }
}
