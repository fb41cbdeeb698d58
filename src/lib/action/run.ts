// The executor's part: what has been approved goes to its node, and what has ended there ends here. Never more than that: nothing
// of an action is run on this machine, and no connection is made.
import { requireRoot } from '../actions/control/root.ts';
import type { Context } from '../context.ts';
import { describeError } from '../errors.ts';
import { readMoment } from '../host/moment.ts';
import { withLock } from '../lock/with-locks.ts';
import type { Outcome } from '../outcome.ts';
import { describeIdle } from '../report/idle.ts';
import { recordRun } from '../state/record-run.ts';
import { applyDispatch, applyFinish, applyRefuse, applyWithdraw } from './apply.ts';
import { gatherDispatch, gatherSettle, gatherWithdraw } from './gather.ts';
import { finishMoves } from './move.ts';
import { noteHistory, warnOnce } from './note.ts';
import { planDispatch, planSettle, planWithdraw } from './plan.ts';
import type { Step } from './steps.ts';

export type ExecutorOptions = {
  waitMs: number;
  dispatch: boolean;
  settle: boolean;
};

/** `partial` (exit 1) where a step failed, or something needs a person. */
export async function runExecutor(ctx: Context, { waitMs, ...parts }: ExecutorOptions): Promise<Outcome> {
  const root = await requireRoot(ctx);
  const work = async (): Promise<Outcome> => {
    for (const trouble of await finishMoves(root)) warnOnce(ctx, trouble);
    // What ends makes room for what waits.
    const settled = parts.settle ? await doAll(ctx, root, () => planSettleNow(ctx, root)) : [];
    const dispatched = parts.dispatch ? await doAll(ctx, root, () => planDispatchNow(ctx, root)) : [];
    const withdrawn = parts.dispatch ? await doAll(ctx, root, () => planWithdrawNow(ctx, root)) : [];
    return renderRun([...settled, ...dispatched, ...withdrawn]);
  };
  const record = () => recordRun(ctx, 'action', work, { goesOnUnrecorded: true });
  return await withLock(ctx, 'action', record, { waitMs });
}

async function planSettleNow(ctx: Context, root: string): Promise<Step[]> {
  return planSettle(await gatherSettle(ctx, root), await readMoment(ctx));
}

async function planDispatchNow(ctx: Context, root: string): Promise<Step[]> {
  return planDispatch(await gatherDispatch(ctx, root));
}

async function planWithdrawNow(ctx: Context, root: string): Promise<Step[]> {
  return planWithdraw(await gatherWithdraw(ctx, root));
}

type Done = { step: Step; outcome: 'done' | 'waits' | 'trouble' | 'failed'; error?: string };

/** One that fails does not keep the others from theirs. */
async function doAll(ctx: Context, root: string, plan: () => Promise<Step[]>): Promise<Done[]> {
  const done: Done[] = [];
  for (const step of await plan()) {
    if (ctx.signal.aborted) break;
    if (step.kind === 'wait') {
      done.push({ step, outcome: step.isTrouble === true ? 'trouble' : 'waits' });
      continue;
    }
    const error = await applyStep({ ...ctx, root }, step).then(() => undefined, describeError);
    done.push({ step, ...(error === undefined ? { outcome: 'done' } : { outcome: 'failed', error }) });
    await noteHistory(ctx, toNote(step, error));
  }
  return done;
}

async function applyStep(
  ctx: Context & { root: string },
  step: Exclude<Step, { kind: 'wait' }>,
): Promise<void> {
  switch (step.kind) {
    case 'dispatch':
      return await applyDispatch(ctx, step);
    case 'finish':
      return await applyFinish(ctx, step);
    case 'refuse':
      return await applyRefuse(ctx, step);
    case 'withdraw':
      return await applyWithdraw(ctx, step);
  }
}

function toNote({ kind, found, reason }: Step, error: string | undefined): Parameters<typeof noteHistory>[1] {
  return {
    action: kind,
    reason: `${found.id}: ${reason}`,
    ...(error === undefined
      ? { outcome: kind === 'refuse' ? 'refused' : 'done' }
      : { outcome: 'failed', error }),
  };
}

function renderRun(done: readonly Done[]): Outcome {
  const acted = done.filter(({ outcome }) => outcome !== 'waits');
  const isBad = acted.some(({ outcome }) => outcome !== 'done');
  return {
    outcome: isBad ? 'partial' : acted.length === 0 ? 'nothing-to-do' : 'done',
    text: done.length === 0 ? describeIdle() : done.map(renderLine),
    data: {
      actions: done.map(({ step, outcome, error }) => ({
        ...{ action: step.kind, id: step.found.id, to: targetOf(step), reason: step.reason, outcome },
        ...(error === undefined ? {} : { error }),
      })),
    },
  };
}

function renderLine({ step, error }: Done): string {
  const target = targetOf(step);
  const rests = step.kind === 'withdraw' ? 'withdrawn from its node' : 'waits';
  const what = target === null ? rests : `${step.found.state} -> ${target}`;
  return error === undefined ? `${step.found.id}: ${what}: ${step.reason}` : `${step.found.id}: ${error}`;
}

function targetOf(step: Step): string | null {
  if (step.kind === 'wait' || step.kind === 'withdraw') return null;
  return step.kind === 'dispatch' ? 'running' : step.to;
}
