// The status of a tick that could not be done: what was last known, with the reason where launch-pad's readers look.
import type { ReeveDocument } from '../cluster/reeve-document.ts';
import { buildFailedStatus } from '../cluster/status.ts';
import type { NodeStatus } from '../cluster/wire.ts';
import { version } from '../version.ts';
import { type Publisher, publishStatus, readPublished } from './status-writer.ts';

/** Readers cut nothing, and a message that fills a page helps nobody. */
const maxMessageLength = 2000;

/** Always written: a failing node must not look like one that is merely quiet. */
export async function publishFailure(
  publisher: Publisher,
  reason: string,
  more: Pick<ReeveDocument, 'edge'> = {},
): Promise<void> {
  const { ctx, cluster, nodeId, role } = publisher;
  const now = ctx.clock.now();
  const message = reason.slice(0, maxMessageLength);
  const identity = { nodeId, agentId: cluster.agentId ?? nodeId, agentVersion: cluster.agentVersion };
  const last = (await readPublished(ctx, role))?.body;
  const failed = buildFailedStatus(identity, message, now);
  const status: NodeStatus = { ...failed, ...(last && keptFrom(last, message)) };
  const reeve: ReeveDocument = {
    version: 1,
    nodeId,
    reeve: version,
    updatedAt: now.toISOString(),
    desired: null,
    converged: false,
    failing: [{ project: '', service: '', message }],
    draining: [],
    ...more,
  };
  await publishStatus(publisher, { status, reeve, force: true });
}

/** What runs and what is routed goes on while nobody can look after it. */
function keptFrom(
  { services, edgeRoutes, caddy }: NodeStatus,
  error: string,
): Pick<NodeStatus, 'services' | 'edgeRoutes' | 'caddy'> {
  return { services, edgeRoutes, caddy: { ...caddy, error } };
}
