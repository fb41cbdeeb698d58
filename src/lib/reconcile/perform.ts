// Carries out one service's turn: its steps in order, under its lock, each told in history. One service's error ends
// its own turn only.
import { BusyError, describeError, ReeveError } from '../errors.ts';
import { serviceLock } from '../lock/names.ts';
import { withLock } from '../lock/with-locks.ts';
import { foldLines } from '../report/table.ts';
import { applyStep } from './apply.ts';
import type { ServicePlan } from './plan-service.ts';
import type { ActionReport, Session } from './session.ts';
import { looksOnly, type Step, stepVerbs } from './steps.ts';

/** A service that failed is looked at again after this, in milliseconds. */
const pauseMs = 1000;
/** After so many failures in a row the next activation tries. */
export const maxFaultsInARow = 3;

/** Never throws. Returns the reason if the service's lock was busy. */
export async function performTurn(session: Session, plan: ServicePlan): Promise<string | undefined> {
  const [project = '', service = ''] = plan.key.split('/');
  session.busy.add(plan.key);
  const work = async (): Promise<void> => {
    for (const step of plan.steps) await performStep(session, step);
  };
  try {
    const onlyLooks = plan.steps.every((step) => looksOnly.has(step.action));
    if (onlyLooks) await work();
    else await withLock(session.ctx, serviceLock({ project, service }), work);
    session.faults.delete(plan.key);
    return undefined;
  } catch (error) {
    if (error instanceof BusyError) return error.message;
    if (isInterruption(session, error)) return undefined;
    recordFault(session, plan.key, describeError(error));
    return undefined;
  } finally {
    session.busy.delete(plan.key);
  }
}

/** Told to stop while it waited for a lock or pulled an image: nothing has gone wrong, and the next run goes on. */
function isInterruption(session: Session, error: unknown): boolean {
  const codes = ['aborted', 'interrupted'];
  return session.ctx.signal.aborted && error instanceof ReeveError && codes.includes(error.code);
}

function recordFault(session: Session, key: string, error: string): void {
  const earlier = session.faults.get(key);
  const notBefore = new Date(session.ctx.clock.now().getTime() + pauseMs);
  session.faults.set(key, { error, inARow: (earlier?.inARow ?? 0) + 1, notBefore });
}

async function performStep(session: Session, step: Step): Promise<void> {
  try {
    await applyStep(session, step);
    if (!looksOnly.has(step.action)) report(session, step, undefined);
  } catch (error) {
    if (!isInterruption(session, error)) report(session, step, describeError(error));
    throw error;
  }
}

function report(session: Session, step: Step, error: string | undefined): void {
  const { ctx } = session;
  const [project = '', service = ''] = step.key.split('/');
  const outcome = error === undefined ? ('done' as const) : ('failed' as const);
  const action: ActionReport = {
    action: stepVerbs[step.action],
    project,
    service,
    ...(step.index === undefined ? {} : { replica: step.index }),
    reason: step.reason,
    outcome,
    ...(error === undefined ? {} : { error }),
  };
  session.actions.push(action);
  const at = ctx.clock.now().toISOString();
  session.events.push({ at, run: ctx.runId, concern: 'reconcile', ...action, outcome });
  const subject = step.index === undefined ? step.key : `${step.key}#${step.index}`;
  if (error === undefined) ctx.log.info(`${action.action} ${subject}: ${step.reason}`);
  // What has failed is the release; of an abort that could not be done the error says so.
  else if (step.action === 'abortReplica') ctx.log.error(`${action.action} ${subject}: ${foldLines(error)}`);
  else ctx.log.error(`${action.action} ${subject} failed: ${foldLines(error)}`);
}
