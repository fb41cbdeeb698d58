// Reads what the planners ask for.
import {
  type Found,
  type FoundAction,
  type Handed,
  readDispatch,
  redeployType,
} from '../actions/control/found.ts';
import { readAction, readEverywhere, readHanded, readNodes, readState } from '../actions/control/tree.ts';
import type { Context } from '../context.ts';
import { markerKey } from '../deploy-runner/key.ts';
import { usualResultMs } from '../deploy-runner/times.ts';
import { describeError, ReeveError } from '../errors.ts';
import { readResults } from './events.ts';
import type { Reported } from './facts.ts';
import { warnOnce } from './note.ts';
import type { DispatchFacts, SettleFacts, WithdrawFacts } from './plan.ts';

type GatherContext = Pick<Context, 'log' | 'config' | 'clock'>;

export async function gatherDispatch(ctx: GatherContext, root: string): Promise<DispatchFacts> {
  const approved = await readAll(ctx, root, 'approved');
  if (approved.length === 0) return { approved, running: new Set(), ended: new Map() };
  const running = new Set<string>();
  const now = ctx.clock.now();
  const ended = new Map<string, ReadonlySet<string>>();
  for (const { id } of approved) {
    if ((await readAction(root, 'running', id)) !== undefined) running.add(id);
    const finals = await Promise.all([readAction(root, 'completed', id), readAction(root, 'failed', id)]);
    ended.set(id, new Set(finals.flatMap((final) => readKeys(final, now))));
  }
  return { approved, running, ended };
}

/** Of one that was refused before it was dispatched as well: it was approved all the same. */
function readKeys(found: Found | undefined, now: Date): string[] {
  if (found === undefined || found.kind === 'refused') return [];
  const { key } = readDispatch(found, now);
  return [key, markerKey(found.action, found.bytes)].filter((one) => one !== undefined);
}

export async function gatherSettle(ctx: GatherContext, root: string): Promise<SettleFacts> {
  const running = await readAll(ctx, root, 'running');
  const now = ctx.clock.now();
  const reported = new Map<string, readonly Reported[]>();
  const unread = new Map<string, string>();
  for (const [node, actions] of groupByNode(running)) {
    const ids = new Set(actions.map(({ id }) => id));
    const sinceMs = Math.min(...actions.map((action) => readDispatch(action, now).since.atMs));
    const { byId, problems } = await readResults(ctx, root, { node, ids, sinceMs });
    for (const [id, results] of byId) reported.set(id, results);
    if (problems.length > 0) unread.set(node, problems.join('; '));
  }
  return { running, reported, unread, timeoutMs: ctx.config.actions?.resultTimeoutMs ?? usualResultMs };
}

/** A directory that cannot be looked into is told, and keeps nothing else back. */
export async function gatherWithdraw(ctx: GatherContext, root: string): Promise<WithdrawFacts> {
  const tell = (error: unknown): never[] => {
    if (!(error instanceof ReeveError)) throw error;
    warnOnce(ctx, describeError(error));
    return [];
  };
  const facts: { handed: Handed; everywhere: readonly Found[] }[] = [];
  for (const node of await readNodes(root).catch(tell)) {
    for (const handed of await readHanded(root, node).catch(tell))
      facts.push({ handed, everywhere: await readEverywhere(root, handed.id) });
  }
  return facts;
}

function groupByNode(running: readonly Found[]): Map<string, FoundAction[]> {
  const groups = new Map<string, FoundAction[]>();
  for (const found of running) {
    if (found.kind === 'refused' || found.action.type !== redeployType) continue;
    const { node } = found.action;
    groups.set(node, [...(groups.get(node) ?? []), found]);
  }
  return groups;
}

async function readAll(
  { log }: GatherContext,
  root: string,
  state: 'approved' | 'running',
): Promise<readonly Found[]> {
  const { found, foreign, isCut } = await readState(root, state);
  if (foreign > 0)
    log.warning(`${foreign} names are no action's, and are left alone`, { path: `${root}/${state}` });
  if (isCut)
    log.warning(`there are more than ${found.length} actions: the others wait`, {
      path: `${root}/${state}`,
    });
  return found;
}
