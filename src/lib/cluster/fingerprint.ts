// What counts as a change of a published document, and when it is written. Timestamps and telemetry do not count.
import { createHash } from 'node:crypto';
import { canonicalJson, compareBytewise } from './canonical.ts';
import {
  type NodeStatus,
  type ServiceStatus,
  type ShardBackend,
  serviceKey,
  type UpstreamShard,
} from './wire.ts';

export function statusFingerprint(status: NodeStatus): string {
  return hash({
    nodeId: status.nodeId,
    agentId: status.agentId,
    agentVersion: status.agentVersion,
    caddy: { managed: status.caddy.managed, error: status.caddy.error },
    edgeRoutes: status.edgeRoutes.toSorted((left, right) => compareBytewise(left.domain, right.domain)),
    services: status.services
      .toSorted((left, right) => compareBytewise(serviceKey(left), serviceKey(right)))
      .map(hashedService),
  });
}

export function shardFingerprint(shard: Omit<UpstreamShard, 'updatedAt'>): string {
  return hash({
    nodeId: shard.nodeId,
    privateIp: shard.privateIp,
    backends: sortBackends(shard.backends),
  });
}

/** The order in which backends are hashed and written: by `domain:hostPort` as text. */
export function sortBackends(backends: readonly ShardBackend[]): ShardBackend[] {
  const sortKey = (backend: ShardBackend): string => `${backend.domain}:${backend.hostPort}`;
  return backends.toSorted((left, right) => compareBytewise(sortKey(left), sortKey(right)));
}

export type WriteRecord = { fingerprint: string; lastWriteAt: string };

/** Why a document is written now, or `skip`. */
export type WriteDecision = 'first' | 'changed' | 'liveness' | 'skip';

/** `previous` is what the last successful write left. A last write in the future (the clock went back) counts as long ago. */
export function decideWrite(
  previous: WriteRecord | undefined,
  fingerprint: string,
  now: Date,
  livenessMs: number,
): WriteDecision {
  if (previous === undefined) return 'first';
  if (previous.fingerprint !== fingerprint) return 'changed';
  const ageMs = now.getTime() - Date.parse(previous.lastWriteAt);
  return ageMs >= 0 && ageMs < livenessMs ? 'skip' : 'liveness';
}

/** Not hashed: updatedAt and the cron roll-up, which change without a change of state. */
function hashedService(service: ServiceStatus): Record<string, unknown> {
  const { updatedAt: _, cron: __, replicas, jobRun, ...hashed } = service;
  return {
    ...hashed,
    replicas: replicas.toSorted((left, right) => left.index - right.index),
    jobRun: jobRun && {
      id: jobRun.id,
      requestedAt: jobRun.requestedAt,
      exitCode: jobRun.exitCode,
      state: jobRun.state,
      message: jobRun.message,
    },
  };
}

function hash(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex');
}
