// How this machine stands with actions: what waits here, what runs, what ended last; on a control host how many are in which state.
// Read-only.
import { type LastEnded, readLastEnded } from '../actions/control/last.ts';
import { requireRoot } from '../actions/control/root.ts';
import { surveyControl } from '../actions/control/survey.ts';
import { type LastAction, readLastEnd } from '../actions/last-end.ts';
import { type NodeSurvey, surveyNode } from '../actions/survey.ts';
import type { ActionsConfig } from '../config/config.ts';
import type { Context } from '../context.ts';
import { describeError, ReeveError } from '../errors.ts';
import { foldLines } from '../report/table.ts';
import { formatDuration } from '../time.ts';
import { ago } from './ago.ts';

export type ActionsView = {
  /** Null on a machine that has the control side alone. */
  node: NodeView | null;
  /** Null on a machine that is no control host. */
  control: ControlView | null;
};

type NodeView = NodeCounts | { name: string; error: string };

type NodeCounts = {
  name: string;
  inbox: number;
  /** Begun, not ended as far as anybody knows, and somebody is at it. */
  running: readonly { actionId: string; service: string | null; startedAt: string | null }[];
  /** Begun, and their process is gone: the next run tells of them. */
  lost: readonly string[];
  /** Results that have not been sent, and since when the oldest waits. */
  outbox: number;
  unsentSince: string | null;
  /** Ended, and not in the outbox yet. */
  untold: readonly string[];
  /** Approvals whose marker says nothing that is known here, which the disk does not give, or which a later reeve has written. */
  damaged: readonly string[];
  unreadable: readonly string[];
  newer: readonly string[];
  quarantined: number;
  /** Null as well where nobody can tell. */
  last: LastAction | null;
};

type ControlView = ControlCounts | { root: string; error: string };

type ControlCounts = {
  root: string;
  pending: number;
  approved: number;
  running: number;
  /** Past the time after which they have failed. */
  late: readonly string[];
  /** Null as well where so much has ended that nobody looks for it. */
  last: LastEnded | null;
};

export async function readActionsView(ctx: Context, actions: ActionsConfig): Promise<ActionsView> {
  const { node, root } = actions;
  const [ofNode, ofControl] = await Promise.all([
    node === '' ? null : orError(readNode(ctx, node), { name: node }),
    root === undefined ? null : orError(readControl(ctx, { ...actions, root }), { root }),
  ]);
  return { node: ofNode, control: ofControl };
}

/** What cannot be looked at hides nothing of the rest. */
async function orError<T, O extends object>(
  work: Promise<T>,
  about: O,
): Promise<T | (O & { error: string })> {
  return await work.catch((error: unknown) => {
    if (!(error instanceof ReeveError)) throw error;
    return { ...about, error: describeError(error) };
  });
}

async function readNode(ctx: Context, name: string): Promise<NodeCounts> {
  const [{ inbox, outbox, quarantine, open }, last] = await Promise.all([surveyNode(ctx), readLastEnd(ctx)]);
  const named = (state: NodeSurvey['open'][number]['state']): string[] =>
    open.filter((one) => one.state === state).map(({ actionId }) => actionId);
  return {
    ...{ name, inbox: inbox.count, outbox: outbox.count },
    running: open
      .filter(({ state }) => state === 'started')
      .map(({ actionId, service = null, at = null }) => ({ actionId, service, startedAt: at })),
    unsentSince: outbox.sinceMs === undefined ? null : new Date(outbox.sinceMs).toISOString(),
    ...{ lost: named('lost'), untold: named('ended'), damaged: named('damaged') },
    ...{ unreadable: named('unreadable'), newer: named('newer') },
    ...{ quarantined: quarantine.length, last: last ?? null },
  };
}

async function readControl(ctx: Context, actions: ActionsConfig & { root: string }): Promise<ControlCounts> {
  const { root } = actions;
  await requireRoot(ctx);
  const [{ pending, approved, running, late }, last] = await Promise.all([
    surveyControl(actions, ctx),
    readLastEnded(root),
  ]);
  return { root, pending, approved, running, late: late.map(({ id }) => id), last: last ?? null };
}

export function renderActionsView({ node, control }: ActionsView, now: Date): string[] {
  return [
    ...(node === null ? [] : renderNode(node, now)),
    ...(control === null ? [] : renderControl(control, now)),
  ];
}

function renderNode(view: NodeView, now: Date): string[] {
  if ('error' in view) return [`actions of node ${view.name}: ${foldLines(view.error)}`];
  const { name, inbox, outbox, unsentSince, running, quarantined, last } = view;
  const oldest = unsentSince === null ? '' : `, the oldest from ${ago(unsentSince, now)}`;
  const counts = [
    `${inbox} in the inbox`,
    `${running.length} running`,
    `${outbox} to send${oldest}`,
    ...(quarantined === 0 ? [] : [`${quarantined} quarantined`]),
  ];
  return [
    `actions of node ${name}: ${counts.join(', ')}`,
    ...running.map(({ actionId, startedAt }) => {
      const forMs = Math.max(0, now.getTime() - Date.parse(startedAt ?? ''));
      return `action ${actionId}: running${Number.isNaN(forMs) ? '' : ` for ${formatDuration(forMs)}`}`;
    }),
    ...renderLeft(view),
    renderLast(last, now),
  ];
}

function renderLeft({ lost, untold, damaged, unreadable, newer }: NodeCounts): string[] {
  const tell = (what: string, ids: readonly string[]): string[] =>
    ids.length === 0 ? [] : [`actions ${what}: ${ids.join(', ')}`];
  return [
    ...tell('whose process is gone', lost),
    ...tell('without a result in the outbox', untold),
    ...tell('whose marker is damaged', damaged),
    ...tell('whose marker cannot be read', unreadable),
    ...tell('whose marker is of a later reeve', newer),
  ];
}

function renderLast(last: LastAction | null, now: Date): string {
  if (last === null) return 'last action: none that is known';
  const { actionId, outcome, endedAt, reason } = last;
  return `last action: ${actionId} ${outcome} ${ago(endedAt, now)}${reason === undefined ? '' : `: ${foldLines(reason)}`}`;
}

function renderControl(view: ControlView, now: Date): string[] {
  if ('error' in view) return [`control host of actions: ${foldLines(view.error)}`];
  const { pending, approved, running, late, last } = view;
  return [
    `control host of actions: ${pending} pending, ${approved} approved, ${running} running`,
    ...(late.length === 0 ? [] : [`actions running past their time: ${late.join(', ')}`]),
    ...(last === null ? [] : [renderLastEnded(last, now)]),
  ];
}

function renderLastEnded({ id, state, endedAt, by, reason }: LastEnded, now: Date): string {
  const why = reason ?? (by === null ? undefined : `by ${by}`);
  return `last ended: ${id} ${state} ${ago(endedAt, now)}${why === undefined ? '' : `: ${foldLines(why)}`}`;
}
