// The routing that the node's replicas make, edge by edge, and who has a domain that several services claim. A replica routes
// while it runs, has a port, and has nothing recorded: not yet proven ones and leaving ones do not. Pure.
import { compareBytewise } from '../cluster/canonical.ts';
import type { RejectedService } from '../cluster/desired.ts';
import type { WriteDecision } from '../cluster/fingerprint.ts';
import { buildShards, type RoutedService } from '../cluster/shard.ts';
import { type Ingress, serviceKey, type UpstreamShard } from '../cluster/wire.ts';
import { hasJustLeft } from './acknowledgement.ts';
import type { DesiredFacts, Facts, LeftBackend, PublishedBackend, PublishedShard, Replica } from './facts.ts';

type Route = RoutedService & { ingress: Ingress; isRun: boolean };

/** By edge and domain in lower case, the key of the one service that the domain is routed to. */
export type Claims = ReadonlyMap<string, ReadonlyMap<string, string>>;

/** The shard of every edge that is named or was told of us before. */
export function planShards(facts: Facts): ReadonlyMap<string, UpstreamShard> {
  const claims = findClaims(facts);
  return buildShards({
    nodeId: facts.node.nodeId,
    privateIp: facts.node.privateIp,
    updatedAt: facts.now.toISOString(),
    services: routesOf(facts.desired).filter(
      (route) => holderOf(claims, route.ingress) === serviceKey(route),
    ),
    replicas: facts.replicas.filter((replica) => isRoutable(facts, replica)) as RoutableReplica[],
    publishedEdges: Object.keys(facts.shards),
  });
}

/**
 * Whom each domain is routed to. Of several services the one that has had it keeps it, also while none of its replicas
 * serves or its definition cannot be read; else the first by key, one that is run before one that is not.
 */
export function findClaims({ desired, shards }: Pick<Facts, 'desired' | 'shards'>): Claims {
  const unread = new Set(unreadServices(desired).map(({ key }) => key));
  const claims = new Map<string, Map<string, string>>();
  for (const route of routesOf(desired).sort(compareRoutes)) {
    const domain = route.ingress.domain.toLowerCase();
    const ofEdge = claims.get(route.ingress.edge) ?? new Map<string, string>();
    claims.set(route.ingress.edge, ofEdge);
    const key = serviceKey(route);
    const holder = shards[route.ingress.edge]?.holders?.[domain];
    if (holder !== undefined && unread.has(holder)) ofEdge.set(domain, holder);
    else if (holder === key || !ofEdge.has(domain)) ofEdge.set(domain, key);
  }
  return claims;
}

/** Host names are the same in upper and lower case. */
export function holderOf(
  claims: Claims,
  { edge, domain }: Pick<Ingress, 'edge' | 'domain'>,
): string | undefined {
  return claims.get(edge)?.get(domain.toLowerCase());
}

function compareRoutes(one: Route, other: Route): number {
  return Number(other.isRun) - Number(one.isRun) || compareBytewise(serviceKey(one), serviceKey(other));
}

/** Ports of replicas that serve, of services whose definition does not tell where to. */
export function findUnreadPorts(facts: Facts): Set<number> {
  const unread = new Set(unreadServices(facts.desired).map(({ key }) => key));
  if (facts.desired.kind === 'none' || unread.size === 0) return new Set();
  const read = new Set([...facts.desired.services, ...routesOf(facts.desired)].map(serviceKey));
  // A service without a name may be any of those that are not named otherwise.
  const isUnread = (key: string): boolean => unread.has(key) || (unread.has(undefined) && !read.has(key));
  const serving = facts.replicas.filter((replica) => isRoutable(facts, replica));
  return new Set(
    serving.flatMap((replica) => (isUnread(serviceKey(replica)) ? [Number(replica.hostPort)] : [])),
  );
}

export type ShardWrite = {
  edge: string;
  shard: UpstreamShard;
  fingerprint: string;
  decision: Exclude<WriteDecision, 'skip'>;
};

/** What is remembered of a shard once it has been written. */
export function nextPublished(
  facts: Facts,
  { edge, shard, fingerprint, decision }: ShardWrite,
): PublishedShard {
  const previous = facts.shards[edge];
  const backends = shard.backends.map(({ domain, hostPort }) => ({ domain, hostPort }));
  // A report that named this shard before it was written is an old one, whatever has been in force since.
  const unseen = facts.applied.has(edge) && facts.applied.get(edge) !== fingerprint;
  return {
    fingerprint,
    lastWriteAt: facts.now.toISOString(),
    backends,
    left: findLeft(facts, edge, backends),
    holders: findHolders(facts, edge, backends),
    unseen: decision === 'liveness' ? previous?.unseen === true : unseen,
  };
}

/** Backends that are on their way out, or no longer routed to by some edge for another reason, while they run. */
export function findLeaving(facts: Facts): PublishedBackend[] {
  const unread = findUnreadPorts(facts);
  const left = [...planShards(facts)].flatMap(([edge, { backends }]) => findLeft(facts, edge, backends));
  return left.filter(({ hostPort }) => !unread.has(hostPort));
}

/** Backends that the edge's shard had and has no more, as long as something runs behind them. */
function findLeft(facts: Facts, edge: string, backends: readonly PublishedBackend[]): LeftBackend[] {
  const { backends: had = [], left = [] } = facts.shards[edge] ?? {};
  const at = facts.now.toISOString();
  const gone = [...had.map((backend) => ({ ...backend, at })), ...left];
  const there = new Set(backends.map(({ hostPort }) => hostPort));
  const running = new Set(facts.replicas.map(({ hostPort }) => hostPort));
  return gone.filter(
    (backend) => running.has(backend.hostPort) && !there.has(backend.hostPort) && hasJustLeft(backend, facts),
  );
}

/** Who is routed to now, or was before and claims the domain still. */
function findHolders(
  facts: Facts,
  edge: string,
  backends: readonly PublishedBackend[],
): Record<string, string> {
  const routed = new Set(backends.map(({ domain }) => domain.toLowerCase()));
  const earlier = facts.shards[edge]?.holders ?? {};
  const holders = [...(findClaims(facts).get(edge) ?? [])];
  return Object.fromEntries(holders.filter(([domain, key]) => routed.has(domain) || earlier[domain] === key));
}

type RoutableReplica = Replica & { hostPort: number };

function isRoutable(facts: Facts, replica: Replica): replica is RoutableReplica {
  const record = facts.record.services[serviceKey(replica)]?.replicas[replica.name];
  return replica.state === 'running' && replica.hostPort !== undefined && record === undefined;
}

/** Whose definition does not tell what it is routed as. */
function unreadServices(desired: DesiredFacts): RejectedService[] {
  if (desired.kind === 'none') return [];
  return desired.rejected.filter(({ key, ingress }) => key === undefined || ingress === undefined);
}

/** A rejected service keeps its route: what runs of it still serves. */
function routesOf(desired: DesiredFacts): Route[] {
  if (desired.kind === 'none') return [];
  const accepted = desired.services.flatMap((service): Route[] => {
    const { ingress, cron, jobRun } = service;
    const isRun = cron === undefined && jobRun === undefined;
    return ingress === null ? [] : [{ ...service, ingress, isRun }];
  });
  const rejected = desired.rejected.flatMap(({ key, ingress }): [string, Route][] => {
    if (key === undefined || ingress === undefined) return [];
    const [project = '', service = ''] = key.split('/');
    const route = { project, service, ingress, healthCheck: null, isRun: false };
    // One that is refused for being there twice is in the list twice, too.
    return [[JSON.stringify(route), route]];
  });
  return [...accepted, ...new Map(rejected).values()];
}
