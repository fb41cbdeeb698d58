// One liveness report to the store. It never gathers: what it repeats, reconcile has found out, and it says nothing while
// reconcile is not alive, so that the node goes stale, which is the truth.
import type { Role } from '../config/config.ts';
import type { NodeConfig } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { describeError, StepError } from '../errors.ts';
import { type Sampled, sampleHost } from '../host/sample.ts';
import type { Outcome } from '../outcome.ts';
import { readPublished, repeatStatus } from '../publish/status-writer.ts';
import { openStore } from '../store/open.ts';
import { gatherLiveness } from './gather.ts';
import { planLiveness } from './plan.ts';

/**
 * A box that is both app and edge is two nodes in the store, and one of them may be alive without the other. Throws StepError
 * where one is not, UnavailableError where the store does not take it, after the other's report.
 */
export async function reportToStore(ctx: Context, node: NodeConfig): Promise<Outcome> {
  const alive: string[] = [];
  const errors: unknown[] = [];
  let sampled: Promise<Sampled> | undefined;
  const sample = (): Promise<Sampled> => {
    sampled ??= sampleHost(ctx.clock);
    return sampled;
  };
  for (const role of node.roles) {
    const nodeId = role === 'edge' ? (node.edgeId ?? node.nodeId) : node.nodeId;
    try {
      if (await reportRole(ctx, { node, role, nodeId }, sample)) alive.push(nodeId);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 1) throw new StepError(errors.map(describeError).join('; '), { code: 'not-alive' });
  if (errors.length > 0) throw errors[0];
  if (alive.length === 0) return { outcome: 'nothing-to-do', text: ['nothing has been published yet'] };
  return {
    outcome: 'done',
    text: alive.map((nodeId) => `node ${nodeId} is alive`),
    data: { nodes: alive, host: (await sample()).host },
  };
}

type RoleOfNode = { node: NodeConfig; role: Role; nodeId: string };

/** False where nothing has been published yet. */
async function reportRole(
  ctx: Context,
  { node, role, nodeId }: RoleOfNode,
  sample: () => Promise<Sampled>,
): Promise<boolean> {
  if ((await readPublished(ctx, role)) === undefined) return false;
  const requireAlive = async (): Promise<void> => {
    const liveness = planLiveness(await gatherLiveness(ctx, node.intervals, role));
    if (liveness.alive) return;
    throw new StepError(`cannot call node "${nodeId}" alive: ${liveness.why}`, { code: 'not-alive' });
  };
  // Before the wait for the lock as well: a run that hangs while it holds the lock is found out, too.
  await requireAlive();
  const sampled = await sample();
  const store = await openStore(node);
  return await repeatStatus({ ctx, cluster: node, store, nodeId, role }, sampled, requireAlive);
}
