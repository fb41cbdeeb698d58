// `action show ID`: all that is known of the actions of an id, and what comes, or came, of them. Read-only.
import { isOpen, readReasons, toInstant } from '../actions/control/end.ts';
import { type Found, type FoundAction, readDispatch } from '../actions/control/found.ts';
import { requireRoot } from '../actions/control/root.ts';
import { readEverywhere } from '../actions/control/tree.ts';
import type { Context } from '../context.ts';
import { parseActionFileName } from '../deploy-runner/names.ts';
import { InputError, UsageError } from '../errors.ts';
import type { Outcome } from '../outcome.ts';
import { foldLines } from '../report/table.ts';
import { ago } from '../status/ago.ts';
import { describeEffect, findWait, type Summary, sortByTime, summarize } from './describe.ts';
import { readResults } from './events.ts';
import { findResults, type Reported } from './facts.ts';
import { findNodeProblem } from './known-node.ts';

export async function showAction(ctx: Context, id: string): Promise<Outcome> {
  const root = await requireRoot(ctx);
  if (parseActionFileName(`${id}.json`) === undefined) {
    throw new UsageError(`${JSON.stringify(id)} is no action's id: \`reeve action list\` shows them`);
  }
  const everywhere = sortByTime(await readEverywhere(root, id));
  if (everywhere.length === 0) {
    const hint = '`reeve action list --all` shows them';
    throw new InputError(`there is no action ${id}: ${hint}`, { code: 'unknown-action' });
  }
  const details = await Promise.all(everywhere.map((found) => detail(ctx, root, { found, everywhere })));
  return {
    outcome: 'done',
    text: details.flatMap((one, index) => [...(index === 0 ? [] : ['']), ...render(one, ctx.clock.now())]),
    data: { actions: details },
  };
}

type Detail = Summary & {
  history: { from: string | null; to: string; at: string | null; by: string; reason: string | null }[];
  diff: string | null;
  image: string | null;
  /** What comes of an approval. */
  effect: string | null;
  /** What keeps it from going to its node. */
  waits: string | null;
  /** Where its node has never been set up here. */
  nodeProblem: string | null;
  /** What its node has reported, also after it was given up. */
  results: {
    event: string;
    status: string;
    exitCode: number | null;
    reason: string | null;
    finishedAt: string;
    output: string | null;
  }[];
};

async function detail(
  ctx: Context,
  root: string,
  { found, everywhere }: { found: Found; everywhere: readonly Found[] },
): Promise<Detail> {
  const summary = summarize(found);
  const waits = findWait(found, everywhere);
  if (found.kind === 'refused') {
    const nothing = { diff: null, image: null, effect: null, waits, nodeProblem: null };
    return { ...summary, history: [], ...nothing, results: [] };
  }
  const { transitions, details } = found.action;
  const reasons = readReasons(found.bytes);
  return {
    ...summary,
    history: transitions.map(({ from, to, timestamp, by }, index) => ({
      ...{ from: from ?? null, to, at: toInstant(timestamp), by, reason: reasons[index] ?? null },
    })),
    ...{ diff: details.diff ?? null, image: details.image ?? null },
    effect: found.state === 'pending' ? describeEffect(found, ctx.config.actions?.resultTimeoutMs) : null,
    waits,
    nodeProblem: isOpen(found) ? await findNodeProblem(root, found) : null,
    results: (await readOwnResults(ctx, root, found)).map(({ name, result }) => ({
      ...{ event: name, status: result.status, exitCode: result.exitCode ?? null },
      ...{ reason: result.reason ?? null, finishedAt: result.finishedAt, output: result.outputTail ?? null },
    })),
  };
}

async function readOwnResults(ctx: Context, root: string, found: FoundAction): Promise<readonly Reported[]> {
  if (!found.action.transitions.some(({ to }) => to === 'running') && found.state !== 'running') return [];
  const dispatched = readDispatch(found, ctx.clock.now());
  const { node } = found.action;
  const wanted = { node, ids: new Set([found.id]), sinceMs: dispatched.since.atMs };
  const { byId, problems } = await readResults(ctx, root, wanted);
  for (const problem of problems) ctx.log.warning(problem);
  return findResults(dispatched, node, byId.get(found.id) ?? []);
}

function render(detail: Detail, now: Date): string[] {
  const { id, state, problem } = detail;
  const facts: [string, string | null][] = [
    ['type', detail.type],
    ['node', detail.node],
    ['service', detail.service],
    ['risk', detail.risk],
    ['created', detail.createdAt === null ? null : `${detail.createdAt} (${ago(detail.createdAt, now)})`],
    ['why', detail.reason],
    ['image', detail.image],
    ['approve', detail.effect],
    ['waits', detail.waits],
    ['warning', detail.nodeProblem],
    ['no use', problem],
  ];
  return [
    `${id}: ${state}`,
    ...facts.flatMap(([name, value]) =>
      value === null ? [] : [`  ${name.padEnd(8)} ${foldLines(value, 400)}`],
    ),
    ...renderBlock('diff', detail.diff),
    ...detail.history.map(({ at, from, to, by, reason }) => {
      const why = reason === null ? '' : `: ${reason}`;
      return `  ${at ?? 'some time'}  ${foldLines(`${from ?? '-'} -> ${to} by ${by}${why}`, 400)}`;
    }),
    ...detail.results.flatMap((result) => renderResult(result, state)),
  ];
}

function renderResult(
  { status, exitCode, reason, finishedAt, event, output }: Detail['results'][number],
  state: string,
): string[] {
  const isLate = (state === 'failed' || state === 'completed') && status !== state;
  const late = isLate ? ', too late to count' : '';
  const code = exitCode === null ? '' : `, exit code ${exitCode}`;
  const why = reason === null ? '' : `: ${foldLines(reason, 400)}`;
  return [
    `  reported ${status}${code} at ${finishedAt}${late}${why} (${event})`,
    ...renderBlock('output', output),
  ];
}

function renderBlock(name: string, text: string | null): string[] {
  if (text === null || text.trim() === '') return [];
  return [
    `  ${name}:`,
    ...text
      .trimEnd()
      .split(/\r*\n/)
      .slice(-200)
      .map((line) => `    ${line}`),
  ];
}
