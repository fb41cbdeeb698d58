// One liveness report to each place that expects one. It never gathers: what it repeats, reconcile has found out, and it says
// nothing while reconcile is not alive, so that the node goes stale, which is the truth.
import { type NodeConfig, requireNode } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { StepError } from '../errors.ts';
import { sampleHost } from '../host/sample.ts';
import { withLock } from '../lock/with-locks.ts';
import type { Outcome } from '../outcome.ts';
import { readPublished, repeatStatus } from '../publish/status-writer.ts';
import { recordRun } from '../state/record-run.ts';
import { openStore } from '../store/open.ts';
import { gatherLiveness } from './gather.ts';
import { planLiveness } from './plan.ts';

export async function runHeartbeat(ctx: Context, { waitMs }: { waitMs: number }): Promise<Outcome> {
  const node = requireNode(ctx.config);
  const work = (): Promise<Outcome> => recordRun(ctx, 'heartbeat', () => reportToStore(ctx, node));
  return await withLock(ctx, 'heartbeat', work, { waitMs });
}

/** Throws StepError where the node is not alive, UnavailableError where the store does not take it. */
async function reportToStore(ctx: Context, node: NodeConfig): Promise<Outcome> {
  const nothing: Outcome = { outcome: 'nothing-to-do', text: ['nothing has been published yet'] };
  if ((await readPublished(ctx)) === undefined) return nothing;
  const requireAlive = async (): Promise<void> => await checkAlive(ctx, node);
  // Before the wait for the lock as well: a run that hangs while it holds the lock is found out, too.
  await requireAlive();
  const sampled = await sampleHost(ctx.clock);
  const store = await openStore(node.store);
  const publisher = { ctx, cluster: node, store, nodeId: node.nodeId };
  if (!(await repeatStatus(publisher, sampled, requireAlive))) return nothing;
  return {
    outcome: 'done',
    text: [`node ${node.nodeId} is alive`],
    data: { node: node.nodeId, host: sampled.host },
  };
}

async function checkAlive(ctx: Context, node: NodeConfig): Promise<void> {
  const liveness = planLiveness(await gatherLiveness(ctx, node));
  if (liveness.alive) return;
  throw new StepError(`cannot call node "${node.nodeId}" alive: ${liveness.why}`, { code: 'not-alive' });
}
