// `action approve` and `action reject`: a person's word about what is pending. Nothing runs here: what is approved waits for the
// executor, and goes to its node by a file.
import type { Found, FoundAction } from '../actions/control/found.ts';
import { requireRoot } from '../actions/control/root.ts';
import { readEverywhere } from '../actions/control/tree.ts';
import type { Context } from '../context.ts';
import { parseActionFileName } from '../deploy-runner/names.ts';
import { describeError, InputError, UsageError } from '../errors.ts';
import { withLock } from '../lock/with-locks.ts';
import type { Outcome } from '../outcome.ts';
import { writeWake } from '../publish/wake.ts';
import { confirm } from '../report/confirm.ts';
import { describeEffect, describeShortly, findWait, summarize } from './describe.ts';
import { findNodeProblem } from './known-node.ts';
import { finishMoves, moveAction } from './move.ts';
import { noteHistory, warnOnce } from './note.ts';
import { readOperator } from './operator.ts';
import { addTransition, approvalTime } from './transition.ts';
import { type Decision, requirePending } from './verdict.ts';

export type DecideRequest = {
  id: string;
  to: Decision;
  /** One line. */
  reason: string | undefined;
  yes: boolean;
  waitMs: number;
};

const verbs: Readonly<Record<Decision, string>> = { approved: 'approve', rejected: 'reject' };

/** Throws InputError where there is nothing to decide about, or it is decided otherwise. */
export async function decideAction(ctx: Context, request: DecideRequest): Promise<Outcome> {
  const root = await requireRoot(ctx);
  const { id, to, yes } = request;
  if (parseActionFileName(`${id}.json`) === undefined) {
    throw new UsageError(`${JSON.stringify(id)} is no action's id: \`reeve action list\` shows them`);
  }
  const shown = requirePending(await readEverywhere(root, id), { id, to });
  if ('known' in shown) return await tellKnown(ctx, { root, request });
  const nodeProblem = to === 'approved' ? await findNodeProblem(root, shown.pending) : null;
  if (nodeProblem !== null) ctx.log.warning(nodeProblem);
  const effect =
    to === 'approved' ? `${describeEffect(shown.pending, ctx.config.actions?.resultTimeoutMs)}\n` : '';
  const question = `${describeShortly(shown.pending)}\n${effect}${verbs[to]} ${id}?`;
  if (!(await confirm(ctx, yes, question))) {
    return {
      outcome: 'nothing-to-do',
      text: ['nothing was done'],
      data: { action: summarize(shown.pending) },
    };
  }
  const work = (): Promise<Outcome> => decideShown(ctx, { root, shown: shown.pending, request });
  return await withLock(ctx, 'action', work, { waitMs: request.waitMs });
}

/** Whoever has decided it may have been killed in the middle of it. */
async function tellKnown(
  ctx: Context,
  { root, request }: { root: string; request: DecideRequest },
): Promise<Outcome> {
  const work = async (): Promise<Outcome> => {
    for (const trouble of await finishMoves(root)) warnOnce(ctx, trouble);
    return await renderLost(root, request);
  };
  return await withLock(ctx, 'action', work, { waitMs: request.waitMs });
}

/** What was shown, and nothing that has taken its place meanwhile. */
async function decideShown(
  ctx: Context,
  { root, shown, request }: { root: string; shown: FoundAction; request: DecideRequest },
): Promise<Outcome> {
  const { id, to, reason } = request;
  for (const trouble of await finishMoves(root)) warnOnce(ctx, trouble);
  const everywhere = await readEverywhere(root, id);
  const current = requirePending(everywhere, { id, to });
  if ('known' in current) return renderKnown(current.known);
  if (!current.pending.bytes.equals(shown.bytes)) throw changed(request);
  const found = current.pending;
  const by = readOperator();
  const timestamp = approvalTime(ctx.clock.now(), readApprovalTimes(everywhere));
  const text = addTransition(found.bytes, {
    ...{ from: 'pending', to, timestamp, by },
    ...(reason === undefined ? {} : { reason }),
  });
  const end = await moveAction({ root, found, to, text });
  if (end === 'changed') throw changed(request);
  if (end !== 'moved') return await renderLost(root, request);
  if (to === 'approved') await wakeExecutor(ctx);
  const why = reason === undefined ? '' : `: ${reason}`;
  await noteHistory(ctx, { action: verbs[to], reason: `${id}: by ${by}${why}`, outcome: 'done' });
  return {
    outcome: 'done',
    text: [`${id} is ${to} by ${by}`, ...(to === 'approved' ? describeNext(ctx, found, everywhere) : [])],
    data: { action: { ...summarize(found), state: to }, by },
  };
}

function describeNext({ config }: Context, found: FoundAction, everywhere: readonly Found[]): string[] {
  const wait = findWait(found, everywhere);
  return [
    describeEffect(found, config.actions?.resultTimeoutMs),
    ...(wait === null ? [] : [`it waits: ${wait}`]),
  ];
}

/** Best effort: there is a timer, too, and whoever approves may be no root. */
async function wakeExecutor({ paths, log }: Context): Promise<void> {
  await writeWake(paths, 'action').catch((error: unknown) => {
    log.debug(`action is not woken: ${describeError(error)}`);
  });
}

function changed({ id, to }: DecideRequest): InputError {
  return new InputError(`cannot ${verbs[to]} ${id}: it was written anew meanwhile: look at it again`, {
    code: 'changed',
  });
}

/** Somebody who takes no lock was faster. */
async function renderLost(root: string, request: DecideRequest): Promise<Outcome> {
  const now = requirePending(await readEverywhere(root, request.id), request);
  if ('known' in now) return renderKnown(now.known);
  throw changed(request);
}

function renderKnown(known: FoundAction): Outcome {
  const summary = summarize(known);
  const by = summary.approvedBy === null ? '' : ` (approved by ${summary.approvedBy})`;
  return {
    outcome: 'nothing-to-do',
    text: [`${known.id} is ${known.state} already${by}`],
    data: { action: summary },
  };
}

function readApprovalTimes(everywhere: readonly Found[]): Set<number> {
  const times = everywhere.flatMap((found) =>
    found.kind === 'refused' ? [] : found.action.transitions.map(({ timestamp }) => timestamp),
  );
  return new Set(times.filter((time) => typeof time === 'number'));
}
