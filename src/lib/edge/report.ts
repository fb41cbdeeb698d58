// What a tick of an edge amounts to for others: status.json and reeve.json. Pure.
import type { EdgeReport, ReeveDocument } from '../cluster/reeve-document.ts';
import { buildNodeStatus } from '../cluster/status.ts';
import type { NodeStatus } from '../cluster/wire.ts';
import { describeCaddyError } from './push.ts';
import type { Route } from './route.ts';

const maxMessageLength = 200;
/** One damaged shard may have thousands of wrong entries. */
const mostTold = 100;

export type EdgeLook = {
  now: Date;
  routes: readonly Route[];
  lastReloadAt: string | null;
  troubles: readonly Trouble[];
  edge: EdgeReport;
};

/** Something that is not as it should be. */
export type Trouble = {
  /** `caddy`, `balancer`, or what of which shard. */
  subject: string;
  message: string;
  /** Where something failed, rather than was refused. */
  error?: unknown;
};

type Reporter = { nodeId: string; agentId: string; agentVersion: string; reeveVersion: string };

export function reportEdge(look: EdgeLook, reporter: Reporter): { status: NodeStatus; reeve: ReeveDocument } {
  const { nodeId, agentId, agentVersion } = reporter;
  const served = look.routes.filter(({ backends }) => backends.length > 0);
  const status = buildNodeStatus(
    {
      nodeId,
      agentId,
      agentVersion,
      services: [],
      caddy: {
        managed: served.length > 0,
        lastReloadAt: look.lastReloadAt,
        error: caddyErrorOf(look.troubles),
      },
      edgeRoutes: served.map(({ domain, backends }) => ({ domain, upstreams: backends.length })),
    },
    look.now,
  );
  const reeve: ReeveDocument = {
    version: 1,
    nodeId,
    reeve: reporter.reeveVersion,
    updatedAt: look.now.toISOString(),
    desired: null,
    converged: look.troubles.length === 0,
    failing: describeTroubles(look.troubles).map((message) => ({ project: '', service: '', message })),
    draining: [],
    edge: { ...look.edge, rejected: cutRejected(look.edge.rejected) },
  };
  return { status, reeve };
}

/** One line each, the first hundred. */
export function describeTroubles(troubles: readonly Trouble[]): string[] {
  const lines = troubles.slice(0, mostTold).map(({ subject, message }) => `${subject}: ${message}`);
  return troubles.length > mostTold ? [...lines, `and ${troubles.length - mostTold} more`] : lines;
}

function cutRejected(rejected: EdgeReport['rejected']): EdgeReport['rejected'] {
  const told = rejected.slice(0, mostTold).map(({ node, subject, reason }) => ({ node, subject, reason }));
  if (rejected.length <= mostTold) return told;
  return [...told, { node: '', subject: 'others', reason: `${rejected.length - mostTold} more` }];
}

/** Where launch-pad's readers look. A balancer that does not answer keeps routes from being served just as Caddy does. */
function caddyErrorOf(troubles: readonly Trouble[]): string | null {
  const caddy = troubles.find(({ subject }) => subject === 'caddy');
  if (caddy !== undefined) return describeCaddyError(caddy.error);
  const balancer = troubles.find(({ subject }) => subject === 'balancer');
  return balancer === undefined ? null : `balancer: ${balancer.message}`.slice(0, maxMessageLength);
}
