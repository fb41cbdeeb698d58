// One activation: lock, gather, plan, apply, record. `planOnce` is the same without the last two.

import { type NodeConfig, requireRole } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { describeError } from '../errors.ts';
import { withLock } from '../lock/with-locks.ts';
import type { Outcome } from '../outcome.ts';
import { publishFailure } from '../publish/failure.ts';
import { type RunTeller, recordRun } from '../state/record-run.ts';
import type { RunStep } from '../state/run-record.ts';
import { openStore } from '../store/open.ts';
import type { Facts, PlanOptions } from './facts.ts';
import { gatherFacts, readDesired } from './gather.ts';
import { type LoopResult, runLoop } from './loop.ts';
import { openSession } from './open-session.ts';
import { type Plan, planReconcile } from './plan.ts';
import { renderReconcile } from './render.ts';
import type { Session } from './session.ts';

export type ReconcileOptions = PlanOptions & { waitMs: number };

/** A run that has not told what it does for this long is stuck, in milliseconds. */
const beatDeadlineMs = 20_000;
/** Telling it more often than this is not worth the write. */
const beatEveryMs = 5_000;

export async function runReconcile(ctx: Context, options: ReconcileOptions): Promise<Outcome> {
  const cluster = requireRole(ctx.config, 'app', 'reconcile');
  const work = (): Promise<Outcome> => runRecorded(ctx, cluster, options);
  return await withLock(ctx, 'reconcile', work, { waitMs: options.waitMs });
}

/** What a tick would do now, changing nothing. Needs no lock. */
export async function planOnce(ctx: Context, options: PlanOptions): Promise<{ facts: Facts; plan: Plan }> {
  const cluster = requireRole(ctx.config, 'app', 'plan');
  const session = await openSession(ctx, cluster, { readOnly: true });
  try {
    await readDesired(session);
    const facts = { ...(await gatherFacts(session)), routingPublished: true };
    return { facts, plan: planReconcile(facts, options) };
  } finally {
    session.engine.close();
  }
}

async function runRecorded(ctx: Context, cluster: NodeConfig, options: ReconcileOptions): Promise<Outcome> {
  const work = async (run: RunTeller): Promise<Outcome> => {
    try {
      const session = await openSession(ctx, cluster, { readOnly: false });
      return renderReconcile(session, await runSession(session, options, createBeat(ctx, run)));
    } catch (error) {
      await tellFailure(ctx, cluster, error);
      throw error;
    }
  };
  // So that a run which hangs in its very first look is noticed, too.
  return await recordRun(ctx, 'reconcile', work, { step: stepAt(ctx.clock.now(), 'starting') });
}

async function runSession(
  session: Session,
  options: ReconcileOptions,
  beat: (doing: string) => Promise<void>,
): Promise<LoopResult> {
  try {
    return await runLoop(session, { ...options, beat });
  } finally {
    session.engine.close();
  }
}

/** Tells in the run's record what is being done, at most every few seconds. */
function createBeat(ctx: Context, run: RunTeller): (doing: string) => Promise<void> {
  let lastAt = 0;
  return async (doing) => {
    const now = ctx.clock.now();
    if (Math.abs(now.getTime() - lastAt) < beatEveryMs) return;
    lastAt = now.getTime();
    await run.tell(stepAt(now, doing));
  };
}

function stepAt(now: Date, name: string): RunStep {
  const deadlineAt = new Date(now.getTime() + beatDeadlineMs).toISOString();
  return { name, startedAt: now.toISOString(), deadlineAt };
}

/** A tick that could not be done tells so in the node's status, if the store can be written. */
async function tellFailure(ctx: Context, cluster: NodeConfig, error: unknown): Promise<void> {
  try {
    const store = await openStore(cluster);
    const { nodeId } = cluster;
    await publishFailure({ ctx, cluster, store, nodeId, role: 'app' }, describeError(error));
  } catch (second) {
    // A store that is gone is told by the error itself.
    if (describeError(second) === describeError(error)) return;
    ctx.log.warning(`cannot publish the failure: ${describeError(second)}`);
  }
}
