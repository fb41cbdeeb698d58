// The routing signal of a node: which of its ports serve which domain, one document for each edge.
import { compareBytewise } from './canonical.ts';
import { sortBackends } from './fingerprint.ts';
import { type HealthCheck, type Ingress, serviceKey, type UpstreamShard } from './wire.ts';

/** A service as far as routing goes. */
export type RoutedService = {
  project: string;
  service: string;
  ingress: Ingress | null;
  healthCheck: Pick<HealthCheck, 'path'> | null;
};

export type ShardInput = {
  nodeId: string;
  privateIp: string;
  updatedAt: string;
  services: readonly RoutedService[];
  /** Replicas that serve now: running, with a port, not starting and not draining. */
  replicas: readonly { project: string; service: string; hostPort: number }[];
  /** Edges that have a shard of ours: one that is named no more gets an empty one, or it keeps routing to dead ports. */
  publishedEdges: readonly string[];
};

/** Shards by edge, in byte order of the edges' ids. */
export function buildShards(input: ShardInput): ReadonlyMap<string, UpstreamShard> {
  const routed = input.services.filter((service) => service.ingress !== null);
  const named = routed.map((service) => (service.ingress as Ingress).edge);
  const edges = [...new Set([...named, ...input.publishedEdges])].sort(compareBytewise);
  return new Map(edges.map((edge) => [edge, buildShard(edge, routed, input)]));
}

function buildShard(edge: string, routed: readonly RoutedService[], input: ShardInput): UpstreamShard {
  const backends = routed.flatMap((service) => {
    const ingress = service.ingress as Ingress;
    if (ingress.edge !== edge) return [];
    const healthPath = service.healthCheck?.path;
    return input.replicas
      .filter((replica) => serviceKey(replica) === serviceKey(service))
      .map(({ hostPort }) => ({
        domain: ingress.domain,
        hostPort,
        ...(healthPath === undefined ? {} : { healthPath }),
      }));
  });
  const { nodeId, privateIp, updatedAt } = input;
  return { nodeId, privateIp, updatedAt, backends: sortBackends(backends) };
}
