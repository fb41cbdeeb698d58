// Makes routes of all nodes' shards: grouped by domain, backends united, the first health path wins. Pure.
import { compareBytewise } from '../cluster/canonical.ts';
import { type Backend, dialOf, type Route } from './route.ts';
import type { CheckedShard } from './shard.ts';

type Gathered = { backends: Map<string, Backend>; healthPath: string | undefined };

/** Sorted by domain. `shards` in byte order of their nodes, which decides what is first. */
export function mergeShards(shards: readonly CheckedShard[]): Route[] {
  const domains = new Map<string, Gathered>();
  for (const { backends } of shards) {
    for (const { domain, host, port, healthPath } of backends) {
      const known = domains.get(domain);
      const gathered = known ?? { backends: new Map(), healthPath: undefined };
      if (known === undefined) domains.set(domain, gathered);
      gathered.backends.set(dialOf({ host, port }), { host, port });
      gathered.healthPath ??= healthPath;
    }
  }
  return [...domains]
    .map(([domain, { backends, healthPath }]) => buildRoute(domain, [...backends.values()], healthPath))
    .sort((left, right) => compareBytewise(left.domain, right.domain));
}

export function buildRoute(
  domain: string,
  backends: readonly Backend[],
  healthPath: string | undefined,
): Route {
  const sorted = backends.toSorted(
    (left, right) => compareBytewise(left.host, right.host) || left.port - right.port,
  );
  return { domain, backends: sorted, ...(healthPath === undefined ? {} : { healthPath }) };
}
