// The routing that the node's replicas make, and telling the edges of it. A replica routes while it runs, has a port,
// and has nothing recorded: not yet proven ones and leaving ones do not.

import { decideWrite, shardFingerprint } from '../cluster/fingerprint.ts';
import { upstreamKey } from '../cluster/keys.ts';
import { buildShards, type RoutedService } from '../cluster/shard.ts';
import { renderDocument, serviceKey, type UpstreamShard } from '../cluster/wire.ts';
import { describeError } from '../errors.ts';
import type { DesiredFacts, Facts, Replica } from './facts.ts';
import type { Session } from './session.ts';

export type Routing = ReadonlyMap<string, UpstreamShard>;

export type PublishResult = {
  /** Every edge has the routing. */
  published: boolean;
  written: readonly string[];
  errors: readonly string[];
};

/** Writes each edge's shard that has changed or whose last write is old. One edge's failure leaves the others. */
export async function publishRouting(session: Session, facts: Facts): Promise<PublishResult> {
  const written: string[] = [];
  const errors: string[] = [];
  for (const [edge, shard] of routingOf(session, facts)) {
    const previous = session.shards.value.edges[edge];
    const fingerprint = shardFingerprint(shard);
    const decision = decideWrite(previous, fingerprint, facts.now, session.cluster.intervals.livenessMs);
    logDecision(session, edge, decision);
    if (decision === 'skip') continue;
    try {
      const key = upstreamKey(session.cluster.clusterId, edge, session.nodeId);
      await session.store.put(key, renderDocument(shard));
      const record = { fingerprint, lastWriteAt: facts.now.toISOString() };
      await session.shards.update(({ edges }) => ({ edges: { ...edges, [edge]: record } }));
      if (decision !== 'liveness') written.push(edge);
    } catch (error) {
      errors.push(`cannot publish the routing to edge ${edge}: ${describeError(error)}`);
    }
  }
  return { published: errors.length === 0, written, errors };
}

function logDecision(session: Session, edge: string, decision: string): void {
  if (!session.cluster.debugStore) return;
  session.ctx.log.info(decision === 'skip' ? 'shard skipped' : 'shard written', { edge, why: decision });
}

function routingOf(session: Session, facts: Facts): Routing {
  return buildShards({
    nodeId: session.nodeId,
    privateIp: session.privateIp,
    updatedAt: facts.now.toISOString(),
    services: routedServices(facts.desired),
    replicas: facts.replicas.filter((replica) => isRoutable(facts, replica)) as RoutableReplica[],
    publishedEdges: Object.keys(session.shards.value.edges),
  });
}

type RoutableReplica = Replica & { hostPort: number };

function isRoutable(facts: Facts, replica: Replica): replica is RoutableReplica {
  const record = facts.record.services[serviceKey(replica)]?.replicas[replica.name];
  return replica.state === 'running' && replica.hostPort !== undefined && record === undefined;
}

/** A rejected service keeps its route: what runs of it still serves. */
function routedServices(desired: DesiredFacts): RoutedService[] {
  if (desired.kind === 'none') return [];
  const rejected = desired.rejected.flatMap(({ key, ingress }) => {
    if (key === undefined || ingress === undefined) return [];
    const [project = '', service = ''] = key.split('/');
    return [{ project, service, ingress, healthCheck: null }];
  });
  // One that is refused for being there twice is in the list twice, too.
  const routes = new Map(rejected.map((route) => [JSON.stringify(route), route]));
  return [...desired.services, ...routes.values()];
}
