// The way of every release, be it a deploy, a rollback or a restart: tell what changes, ask, write node by node, wake, wait.

import { mapBounded } from '../bounded.ts';
import type { ClusterConfig } from '../config/config.ts';
import type { Context } from '../context.ts';
import { describeError } from '../errors.ts';
import type { Outcome } from '../outcome.ts';
import { wakeTicks } from '../publish/wake.ts';
import { confirm } from '../report/confirm.ts';
import { appendHistory } from '../state/history.ts';
import { applyEdit, keepAndPrune, type NodeResult } from './apply.ts';
import { describeChange, describeExtent, describeFailure, type NodeFailure } from './describe.ts';
import { type NodeState, parallel, type Target } from './gather.ts';
import type { Change, Edit, NodePlan } from './plan.ts';
import type { RawService } from './raw-document.ts';
import type { Turn } from './turn.ts';
import { waitForNodes } from './wait.ts';

export type PlannedNode = { state: NodeState; edit: Edit; plan: NodePlan };

export type Release = {
  /** Why, for the history: `deploy blog.yaml`. */
  reason: string;
  nodes: readonly PlannedNode[];
  /** Nodes that cannot be changed at all. */
  failures: readonly NodeFailure[];
  /** Asked before anything is written. */
  question: string | undefined;
  /** Nodes and services that `--wait` waits for, besides those that are changed. */
  awaited: ReadonlyMap<string, ReadonlySet<string>>;
};

export type ReleaseOptions = {
  yes: boolean;
  dryRun: boolean;
  notify: boolean;
  waitMs: number | undefined;
};

/** Where a release goes, and how. */
export type ReleaseSetting = { cluster: ClusterConfig; target: Target; options: ReleaseOptions; turn: Turn };

export async function runRelease(ctx: Context, setting: ReleaseSetting, release: Release): Promise<Outcome> {
  const { options } = setting;
  const changing = release.nodes.filter(({ plan }) => plan.changes.length > 0);
  const lines = changing.flatMap(({ state, plan }) =>
    plan.changes.map((change) => describeChange(state.node, change)),
  );
  if (options.dryRun) return pendingOutcome(release, changing, lines);
  for (const line of lines) ctx.log.info(line);
  for (const failure of release.failures) ctx.log.error(describeFailure(failure));
  if (changing.length > 0 && release.question !== undefined) {
    if (!(await confirm(ctx, options.yes, release.question))) {
      return { outcome: 'nothing-to-do', text: ['nothing was changed'], data: { nodes: [] } };
    }
  }
  const { results, failures } = await applyAll(ctx, setting, release.nodes);
  const written = results.filter((result) => result.written);
  if (written.length > 0) {
    await recordHistory(ctx, release.reason, written);
    // Nobody has to wait for their turn while a cloud is slow.
    await setting.turn.end();
    if (options.notify) await wakeNodes(ctx, setting, release, written);
    await keepAll(ctx, setting, release, written);
  }
  await setting.turn.end();
  const late = await waitFor(ctx, setting, release, results);
  return finalOutcome(results, [...release.failures, ...failures], late);
}

async function applyAll(
  ctx: Context,
  { target }: ReleaseSetting,
  nodes: readonly PlannedNode[],
): Promise<{ results: NodeResult[]; failures: NodeFailure[] }> {
  const outcomes = await mapBounded(
    nodes,
    parallel,
    async ({ state, edit }): Promise<NodeResult | NodeFailure> => {
      if (ctx.signal.aborted) return { node: state.node, message: 'stopped before it was written' };
      try {
        return await applyEdit({ ctx, target }, state, edit);
      } catch (error) {
        return { node: state.node, message: describeError(error) };
      }
    },
  );
  return {
    results: outcomes.filter((outcome) => 'written' in outcome),
    failures: outcomes.filter((outcome) => 'message' in outcome),
  };
}

/** Nobody waits for it: the nodes are at work already. */
async function keepAll(
  ctx: Context,
  { target }: ReleaseSetting,
  { nodes }: Release,
  written: readonly NodeResult[],
): Promise<void> {
  const states = new Map(nodes.map(({ state }) => [state.node, state]));
  await mapBounded(written, parallel, async (result) => {
    const state = states.get(result.node);
    if (state !== undefined) await keepAndPrune({ ctx, target }, state, result);
  });
}

async function wakeNodes(
  ctx: Context,
  { cluster }: ReleaseSetting,
  { nodes }: Release,
  written: readonly NodeResult[],
): Promise<void> {
  await wakeTicks(ctx, cluster, ['reconcile', 'edge']);
  if (cluster.notify === 'none') return;
  const names = new Set(written.map(({ node }) => node));
  const services = nodes.flatMap(({ state, plan }) => (names.has(state.node) ? plan.services : []));
  const { notifyNodes } = await import('../notify/run.ts');
  await notifyNodes(ctx, { cluster, nodes: [...names, ...findEdges(services)] });
}

/** Those that route to the services: they listen under their own ids. */
function findEdges(services: readonly RawService[]): Set<string> {
  const edges = services.map(
    ({ value }) => (value as { ingress?: { edge?: unknown } | null } | null)?.ingress?.edge,
  );
  return new Set(edges.filter((edge) => typeof edge === 'string'));
}

/** A machine that only deploys may have no state directory: the release does not fail for that. */
async function recordHistory(ctx: Context, reason: string, written: readonly NodeResult[]): Promise<void> {
  const at = ctx.clock.now().toISOString();
  const events = written.flatMap(({ node, changes }) =>
    changes.map(({ action, project, service, fields }) => ({
      at,
      run: ctx.runId,
      concern: 'deploy',
      action,
      project,
      service,
      reason: `${reason}, on ${node}${fields.length === 0 ? '' : `: ${fields.join(', ')}`}`,
      outcome: 'done' as const,
    })),
  );
  try {
    await appendHistory(ctx.paths, events);
  } catch (error) {
    ctx.log.debug(`no history is kept: ${describeError(error)}`);
  }
}

async function waitFor(
  ctx: Context,
  { target, options }: ReleaseSetting,
  release: Release,
  results: readonly NodeResult[],
): Promise<NodeFailure[]> {
  if (options.waitMs === undefined) return [];
  const awaited = results.flatMap(({ node, updatedAt, changes }) => {
    const keys = release.awaited.get(node);
    if (updatedAt === undefined || (changes.length === 0 && keys === undefined)) return [];
    const changed = changes.map(({ project, service }) => `${project}/${service}`);
    return [{ node, updatedAt, keys: new Set([...(keys ?? []), ...changed]) }];
  });
  return await waitForNodes(ctx, target, awaited, options.waitMs);
}

function pendingOutcome(
  release: Release,
  changing: readonly PlannedNode[],
  lines: readonly string[],
): Outcome {
  const failed = release.failures.length > 0;
  const kind = changing.length > 0 ? 'pending' : 'nothing-to-do';
  return {
    outcome: failed ? 'failed' : kind,
    text: [
      ...lines,
      ...release.failures.map(describeFailure),
      ...(kind === 'nothing-to-do' ? [nothing] : []),
    ],
    data: {
      nodes: [
        ...changing.map(({ state, plan }) => ({ node: state.node, written: false, changes: plan.changes })),
        ...release.failures.map(toFailedNode),
      ],
    },
  };
}

const nothing = 'nothing to change';

function finalOutcome(
  results: readonly NodeResult[],
  failures: readonly NodeFailure[],
  late: readonly NodeFailure[],
): Outcome {
  const written = results.filter((result) => result.written);
  const changes = written.reduce((sum, result) => sum + result.changes.length, 0);
  const extent = describeExtent(
    changes,
    written.map(({ node }) => node),
  );
  return {
    outcome: outcomeKind(written.length, failures.length, late.length),
    text: [written.length === 0 ? nothing : extent, ...[...failures, ...late].map(describeFailure)],
    data: {
      nodes: [...written.map(toWrittenNode), ...failures.map(toFailedNode)],
      ...(late.length === 0 ? {} : { notConverged: late }),
    },
  };
}

function outcomeKind(written: number, failures: number, late: number): Outcome['outcome'] {
  if (failures === 0 && late === 0) return written === 0 ? 'nothing-to-do' : 'done';
  return written > 0 && late === 0 ? 'partial' : 'failed';
}

type NodeData = {
  node: string;
  written: boolean;
  changes: readonly Change[];
  updatedAt?: string;
  error?: string;
};

function toWrittenNode({ node, changes, updatedAt }: NodeResult): NodeData {
  return { node, written: true, changes, ...(updatedAt === undefined ? {} : { updatedAt }) };
}

function toFailedNode({ node, message }: NodeFailure): NodeData {
  return { node, written: false, changes: [], error: message };
}
