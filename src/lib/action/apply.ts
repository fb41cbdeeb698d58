// Does the steps of the control side, each so that a kill in it leaves what the next run goes on from.
import { type FoundFile, renderClock } from '../actions/control/found.ts';
import { placeOf } from '../actions/control/tree.ts';
import type { Context } from '../context.ts';
import { StepError } from '../errors.ts';
import { readMoment } from '../host/moment.ts';
import { removeDispatched } from './files.ts';
import { type MoveEnd, moveAction } from './move.ts';
import type { DispatchStep, FinishStep, RefuseStep, WithdrawStep } from './steps.ts';
import { addTransition } from './transition.ts';

type ApplyContext = Pick<Context, 'clock' | 'paths'> & { root: string };

/**
 * The node's file comes first: killed after it, the action is still approved, and the next run writes the same bytes, which are
 * the same approval to the node. Where somebody has taken the action back by then, the node's file goes as well.
 */
export async function applyDispatch(ctx: ApplyContext, { found, key }: DispatchStep): Promise<void> {
  const { bytes, action } = found;
  const moment = await readMoment(ctx);
  const text = addTransition(bytes, {
    ...{ from: 'approved', to: 'running', timestamp: toSeconds(new Date(moment.atMs)), by: 'system' },
    ...{ key, clock: renderClock(moment) },
  });
  requireMoved(
    found,
    await moveAction({ root: ctx.root, found, to: 'running', text, handOver: action.node }),
  );
}

/** What the node is not to begin goes first: killed after it, the action is still running, and ends the same way. */
export async function applyFinish(
  ctx: ApplyContext,
  { found, to, reason, reported }: FinishStep,
): Promise<void> {
  const timestamp = toSeconds(ctx.clock.now());
  const step = { from: 'running', to, timestamp, by: 'system', reason } as const;
  const more = reported === undefined ? {} : { result: describeResult(reported) };
  const text = tryTransition(() => addTransition(found.bytes, step, more));
  await removeDispatched({ root: ctx.root, node: found.action.node, id: found.id });
  requireMoved(found, await moveAction({ root: ctx.root, found, to, ...asText(text) }));
}

/** Bytes that are no action's stay as they are. */
export async function applyRefuse(ctx: ApplyContext, { found, to, reason }: RefuseStep): Promise<void> {
  if (found.kind === 'refused') {
    if (found.isFile) requireMoved(found, await moveAction({ root: ctx.root, found, to, isUnread: true }));
    return;
  }
  const timestamp = toSeconds(ctx.clock.now());
  const step = { from: found.state, to, timestamp, by: 'system', reason };
  const text = tryTransition(() => addTransition(found.bytes, step));
  requireMoved(found, await moveAction({ root: ctx.root, found, to, ...asText(text) }));
}

/** Only these very bytes: approved anew meanwhile, it is another file. */
export async function applyWithdraw(ctx: ApplyContext, { handed }: WithdrawStep): Promise<void> {
  const { node, id, bytes } = handed;
  await removeDispatched({ root: ctx.root, node, id }, (present) => present.equals(bytes));
}

/** Undefined where it has no room for the words. */
function tryTransition(add: () => string): string | undefined {
  try {
    return add();
  } catch {
    return undefined;
  }
}

function asText(text: string | undefined): { text?: string } {
  return text === undefined ? {} : { text };
}

function describeResult({ name, result }: NonNullable<FinishStep['reported']>): Record<string, unknown> {
  const { status, exitCode, startedAt, finishedAt } = result;
  return {
    event: name.slice(0, 255),
    status,
    exit_code: exitCode ?? null,
    started_at: startedAt ?? null,
    finished_at: finishedAt,
  };
}

/** Throws StepError where somebody else was faster, which the next run sees. */
function requireMoved(found: FoundFile, end: MoveEnd): void {
  switch (end) {
    case 'moved':
      return;
    case 'gone':
      throw new StepError(`cannot move ${placeOf(found)}: somebody else has moved it`);
    case 'changed':
      throw new StepError(`cannot move ${placeOf(found)}: somebody else has written it anew`);
    case 'taken':
      throw new StepError(`cannot move ${placeOf(found)}: there is one of the same id already`);
  }
}

function toSeconds(now: Date): number {
  return Math.floor(now.getTime() / 1000);
}
