// When every edge concerned holds the routing without a replica. Pure.
import type { Facts, LeftBackend, PublishedShard } from './facts.ts';

/**
 * True if all edges that were told that the replica behind the port has left report so. Where none is known to have been told,
 * or one says nothing, the floor has to do.
 */
export function isAcknowledged(
  facts: Pick<Facts, 'now' | 'node' | 'shards' | 'applied'>,
  hostPort: number | undefined,
): boolean {
  const { shards, applied } = facts;
  const concerned = Object.entries(shards).filter(([, { left = [] }]) =>
    left.some((backend) => backend.hostPort === hostPort && hasJustLeft(backend, facts)),
  );
  return (
    concerned.length > 0 &&
    concerned.every(([edge, { fingerprint, unseen }]) => unseen === true && applied.get(edge) === fingerprint)
  );
}

/** Edges whose report may end a drain sooner. They are asked before they are told, too: what they report then is old. */
export function findEdgesToAsk({
  record,
  replicas,
  shards,
}: Pick<Facts, 'record' | 'replicas' | 'shards'>): string[] {
  const records = new Map(
    Object.values(record.services).flatMap((service) => Object.entries(service.replicas)),
  );
  const draining = replicas.filter(({ name, hostPort }) => {
    const own = records.get(name);
    return hostPort !== undefined && own?.phase === 'draining' && own.acknowledgedAt === undefined;
  });
  const concerns = ({ backends = [], left = [] }: PublishedShard): boolean =>
    draining.some(({ hostPort }) => hasPort(backends, hostPort) || hasPort(left, hostPort));
  return Object.keys(shards).filter((edge) => concerns(shards[edge] as PublishedShard));
}

/** Within the floor; later on the edge knows, report or not. An instant ahead is of a clock that was put back. */
export function hasJustLeft({ at }: LeftBackend, { now, node }: Pick<Facts, 'now' | 'node'>): boolean {
  return now.getTime() - Date.parse(at) < node.drainFloorMs;
}

function hasPort(backends: readonly { hostPort: number }[], hostPort: number | undefined): boolean {
  return backends.some((backend) => backend.hostPort === hostPort);
}
