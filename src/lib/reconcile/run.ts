// One activation: lock, gather, plan, apply, record. `planOnce` is the same without the last two.

import { type NodeConfig, requireRole } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { describeError, ReeveError } from '../errors.ts';
import { withLock } from '../lock/with-locks.ts';
import { exitCodeOf, type Outcome } from '../outcome.ts';
import { publishFailure } from '../publish/failure.ts';
import { endRun, type RunRecord, type RunStep, recordStep, startRun } from '../state/run-record.ts';
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
  const { paths, runId, clock, log } = ctx;
  const now = clock.now();
  // So that a run which hangs in its very first look is noticed, too.
  const step = stepAt(now, 'starting');
  const started = await startRun(
    { paths, now, log },
    { concern: 'reconcile', runId, pid: process.pid, step },
  );
  const record = createBeat(ctx, started);
  try {
    const session = await openSession(ctx, cluster, { readOnly: false });
    const result = await runSession(session, options, record.beat);
    const outcome = renderReconcile(session, result);
    await endRun(paths, record.current(), {
      now: clock.now(),
      outcome: outcome.outcome,
      exitCode: exitCodeOf(outcome),
    });
    return outcome;
  } catch (error) {
    await recordFailure(ctx, cluster, record.current(), error);
    throw error;
  }
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
function createBeat(ctx: Context, started: RunRecord) {
  let record = started;
  let lastAt = 0;
  return {
    current: () => record,
    beat: async (doing: string): Promise<void> => {
      const now = ctx.clock.now();
      if (Math.abs(now.getTime() - lastAt) < beatEveryMs) return;
      lastAt = now.getTime();
      record = await recordStep(ctx.paths, record, stepAt(now, doing));
    },
  };
}

function stepAt(now: Date, name: string): RunStep {
  const deadlineAt = new Date(now.getTime() + beatDeadlineMs).toISOString();
  return { name, startedAt: now.toISOString(), deadlineAt };
}

/** A tick that could not be done tells so in its record and, if the store can be written, in the node's status. */
async function recordFailure(
  ctx: Context,
  cluster: NodeConfig,
  record: RunRecord,
  error: unknown,
): Promise<void> {
  const message = describeError(error);
  const exitCode = error instanceof ReeveError ? error.exitCode : 70;
  try {
    await endRun(ctx.paths, record, { now: ctx.clock.now(), outcome: 'failed', exitCode, error: message });
    const store = await openStore(cluster.store);
    await publishFailure({ ctx, cluster, store, nodeId: cluster.nodeId }, message);
  } catch (second) {
    ctx.log.warning(`cannot record the failure: ${describeError(second)}`);
  }
}
