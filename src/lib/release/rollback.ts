// `rollback` and `restart`: one service, on every node that has it.

import { mapBounded } from '../bounded.ts';
import type { ClusterConfig } from '../config/config.ts';
import { requireCluster } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { InputError } from '../errors.ts';
import type { Outcome } from '../outcome.ts';
import { listNodes } from '../store/nodes.ts';
import type { NodeFailure } from './describe.ts';
import { findDomainConflicts } from './domains.ts';
import { type NodeState, parallel, readEarlier, readNodes, type Target } from './gather.ts';
import type { PlacedService } from './parse.ts';
import { planRestart } from './plan.ts';
import { findEarlier, planRollback } from './plan-rollback.ts';
import type { RawService } from './raw-document.ts';
import { type PlannedNode, type Release, type ReleaseOptions, runRelease } from './run.ts';
import { openTarget } from './target.ts';
import { inTurn, type Turn } from './turn.ts';

export type ServiceRequest = ReleaseOptions & { key: string };

/** To the definition that differed last but (to - 1), as the node itself had it. */
export async function rollback(ctx: Context, request: ServiceRequest & { to: number }): Promise<Outcome> {
  const cluster = requireCluster(ctx.config);
  return await inTurn(ctx, cluster, request, (turn) => rollbackInTurn(ctx, cluster, request, turn));
}

async function rollbackInTurn(
  ctx: Context,
  cluster: ClusterConfig,
  request: ServiceRequest & { to: number },
  turn: Turn,
): Promise<Outcome> {
  const { key, to } = request;
  const target = await openTarget(ctx, cluster);
  const { states, holders, failures } = await findHolders(target, key);
  const planned = await mapBounded(holders, parallel, async (holder): Promise<Return | NodeFailure> => {
    const { node } = holder.state;
    const earlier = await readEarlier(target, node, (message) => ctx.log.warning(`${node}: ${message}`));
    const found = findEarlier(holder.service, earlier, to);
    if (found === undefined) return { node, message: describeMissing(key, to) };
    ctx.log.info(`${node}: ${key} goes back to the deploy of ${found.updatedAt} (${found.definition.image})`);
    const edit: PlannedNode['edit'] = (document) => planRollback(document, key, found.definition);
    const plan = edit(holder.state.document);
    return { state: holder.state, edit, plan, placed: { key, nodes: [node], service: found.definition } };
  });
  const nodes = planned.filter((node) => 'plan' in node);
  requireOwnDomains(key, states, nodes);
  const release: Release = {
    reason: `rollback ${key}`,
    nodes,
    failures: [...failures, ...planned.filter((node) => 'message' in node)],
    question: undefined,
    awaited: new Map(),
  };
  return await runRelease(ctx, { cluster, target, options: request, turn }, release);
}

/** What goes back to a node, as a deploy would have placed it. */
type Return = PlannedNode & { placed: PlacedService };

/** The domain that the service had may be another's by now. Throws InputError. */
function requireOwnDomains(key: string, states: readonly NodeState[], returns: readonly Return[]): void {
  const plans = new Map(returns.map(({ state, plan }) => [state.node, plan]));
  const after = states.map(({ node, document }) => ({ node, plan: plans.get(node) ?? document }));
  const [conflict] = findDomainConflicts(
    after,
    returns.map(({ placed }) => placed),
  );
  if (conflict !== undefined) throw new InputError(`cannot roll back ${key}: ${conflict}`);
}

function describeMissing(key: string, to: number): string {
  if (to === 1) return `there is no earlier deploy of ${key}`;
  return `there are no ${to} earlier deploys of ${key} that differ; five states of a node are kept`;
}

/** A new `restartAt`, which is another stamp: each node replaces the service's containers as in a rollout. */
export async function restart(ctx: Context, request: ServiceRequest): Promise<Outcome> {
  const cluster = requireCluster(ctx.config);
  return await inTurn(ctx, cluster, request, (turn) => restartInTurn(ctx, cluster, request, turn));
}

async function restartInTurn(
  ctx: Context,
  cluster: ClusterConfig,
  request: ServiceRequest,
  turn: Turn,
): Promise<Outcome> {
  const { key } = request;
  const target = await openTarget(ctx, cluster);
  const { holders, failures } = await findHolders(target, key);
  const restartAt = ctx.clock.now().toISOString();
  const edit: PlannedNode['edit'] = (document) => planRestart(document, key, restartAt);
  const names = holders.map(({ state }) => state.node).join(', ');
  const release: Release = {
    reason: `restart ${key}`,
    nodes: holders.map(({ state }) => ({ state, edit, plan: edit(state.document) })),
    failures,
    question: `restart ${key} on ${names}?`,
    awaited: new Map(),
  };
  return await runRelease(ctx, { cluster, target, options: request, turn }, release);
}

type Holder = { state: NodeState; service: RawService };

/** Nodes that have the service now. Throws InputError where none has it. */
async function findHolders(
  target: Target,
  key: string,
): Promise<{ states: readonly NodeState[]; holders: Holder[]; failures: NodeFailure[] }> {
  const { states, unreadable } = await readNodes(target, await listNodes(target.store, target.clusterId));
  const holders = states.flatMap((state): Holder[] => {
    const service = state.document.services.find((present) => present.key === key);
    return service === undefined ? [] : [{ state, service }];
  });
  const failures = unreadable.map(({ node, error }) => ({ node, message: error.message }));
  if (holders.length === 0) {
    const beside =
      failures.length === 0 ? '' : `, and ${failures.map(({ node }) => node).join(', ')} cannot be read`;
    throw new InputError(`cannot find "${key}": no node has it${beside}`);
  }
  return { states, holders, failures };
}
