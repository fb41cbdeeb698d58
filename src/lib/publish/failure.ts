// The status of a tick that could not be done: what was last known, with the reason where launch-pad's readers look.
import { buildFailedStatus } from '../cluster/status.ts';
import type { NodeStatus } from '../cluster/wire.ts';
import type { ClusterConfig } from '../config/config.ts';
import type { Context } from '../context.ts';
import type { Store } from '../store/store.ts';
import { version } from '../version.ts';
import { publishStatus, readPublished } from './status-writer.ts';

type FailedNode = { ctx: Context; cluster: ClusterConfig; store: Store; nodeId: string };

/** Readers cut nothing, and a message that fills a page helps nobody. */
const maxMessageLength = 2000;

/** Always written: a failing node must not look like one that is merely quiet. */
export async function publishFailure(node: FailedNode, reason: string): Promise<void> {
  const { ctx, cluster, nodeId } = node;
  const now = ctx.clock.now();
  const message = reason.slice(0, maxMessageLength);
  const identity = { nodeId, agentId: cluster.agentId ?? nodeId, agentVersion: cluster.agentVersion };
  const last = (await readPublished(ctx))?.body;
  const failed = buildFailedStatus(identity, message, now);
  const status: NodeStatus = { ...failed, services: last?.services ?? failed.services };
  const reeve = {
    version: 1 as const,
    nodeId,
    reeve: version,
    updatedAt: now.toISOString(),
    desired: null,
    converged: false,
    failing: [{ project: '', service: '', message }],
    draining: [],
  };
  await publishStatus(node, { status, reeve, force: true });
}
