// What the edge's balancer says just now of the backends that were published.
import type { ClusterConfig } from '../config/config.ts';
import { fetchBalancerHealth } from '../edge/balancer-live.ts';
import { ReeveError } from '../errors.ts';
import { usesHaproxy } from '../haproxy/binary.ts';
import type { LiveBalancer } from './edge.ts';

/** A person waits for the answer. */
const timeoutMs = 2_000;

export async function askBalancer(
  { balancer, haproxy }: ClusterConfig,
  { signal }: { signal: AbortSignal },
): Promise<LiveBalancer> {
  if (!(await usesHaproxy(balancer))) return { name: 'caddy' };
  try {
    const { version, domains } = await fetchBalancerHealth(haproxy.directory, { signal, timeoutMs });
    const up = new Map([...domains].map(([domain, servers]) => [domain, servers.up]));
    return { name: 'haproxy', ...(version !== undefined && { version }), up };
  } catch (error) {
    if (!(error instanceof ReeveError)) throw error;
    return { name: 'haproxy' };
  }
}
