// The routing that the node's replicas make, and telling the edges of it. A replica routes while it runs, has a port,
// and has nothing recorded: not yet proven ones and leaving ones do not.

import { decideWrite, shardFingerprint, sortBackends } from '../cluster/fingerprint.ts';
import { upstreamKey } from '../cluster/keys.ts';
import { buildShards, type RoutedService } from '../cluster/shard.ts';
import { renderDocument, type ShardBackend, serviceKey, type UpstreamShard } from '../cluster/wire.ts';
import { describeError } from '../errors.ts';
import type { DesiredFacts, Facts, Replica } from './facts.ts';
import type { Session } from './session.ts';

export type Routing = ReadonlyMap<string, UpstreamShard>;

export type PublishResult = {
  /** Every edge has the routing. */
  published: boolean;
  errors: readonly string[];
};

/**
 * Writes each edge's shard that has changed or whose last write is old. One edge's failure leaves the others. Without a
 * desired state nothing is known of routes: what the edges have stays.
 */
export async function publishRouting(session: Session, facts: Facts): Promise<PublishResult> {
  if (facts.desired.kind === 'none') return { published: true, errors: [] };
  const errors: string[] = [];
  for (const [edge, shard] of routingOf(session, facts)) {
    try {
      await publishShard(session, facts, edge, await keepUnreadRoutes(session, facts, edge, shard));
    } catch (error) {
      errors.push(`cannot publish the routing to edge ${edge}: ${describeError(error)}`);
    }
  }
  return { published: errors.length === 0, errors };
}

async function publishShard(
  session: Session,
  facts: Facts,
  edge: string,
  shard: UpstreamShard,
): Promise<void> {
  const fingerprint = shardFingerprint(shard);
  const previous = session.shards.value.edges[edge];
  const decision = decideWrite(previous, fingerprint, facts.now, session.cluster.intervals.livenessMs);
  logDecision(session, edge, decision);
  if (decision === 'skip') return;
  await session.store.put(shardKey(session, edge), renderDocument(shard));
  const record = { fingerprint, lastWriteAt: facts.now.toISOString() };
  await session.shards.update(({ edges }) => ({ edges: { ...edges, [edge]: record } }));
}

function shardKey(session: Session, edge: string): string {
  return upstreamKey(session.cluster.clusterId, edge, session.nodeId);
}

/** A rejected service whose route cannot be read keeps the one that the edge has: what runs of it still serves. */
async function keepUnreadRoutes(
  session: Session,
  facts: Facts,
  edge: string,
  shard: UpstreamShard,
): Promise<UpstreamShard> {
  const ports = unreadPorts(facts);
  if (ports.size === 0) return shard;
  const stored = await session.store.get(shardKey(session, edge));
  const kept = parseBackends(stored?.text).filter(({ hostPort }) => ports.has(hostPort));
  return { ...shard, backends: sortBackends([...shard.backends, ...kept]) };
}

/** Ports of replicas that serve, of services whose definition does not tell where to. */
function unreadPorts(facts: Facts): Set<number> {
  if (facts.desired.kind === 'none') return new Set();
  const unread = new Set(
    facts.desired.rejected
      .filter(({ key, ingress }) => key === undefined || ingress === undefined)
      .map(({ key }) => key),
  );
  if (unread.size === 0) return new Set();
  const read = new Set(routedServices(facts.desired).map(serviceKey));
  // A service without a name may be any of those that are not named otherwise.
  const isUnread = (key: string): boolean => unread.has(key) || (unread.has(undefined) && !read.has(key));
  const serving = facts.replicas.filter((replica) => isRoutable(facts, replica));
  return new Set(
    serving.flatMap((replica) => (isUnread(serviceKey(replica)) ? [Number(replica.hostPort)] : [])),
  );
}

/** The backends of a shard of our own; none where it is damaged. */
function parseBackends(text: string | undefined): ShardBackend[] {
  if (text === undefined) return [];
  try {
    const { backends } = JSON.parse(text) as Partial<UpstreamShard>;
    return Array.isArray(backends) ? backends : [];
  } catch {
    return [];
  }
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
