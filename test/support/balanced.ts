// A running HAProxy with the balancer that drives it, as one tick of an edge after the other would.
import { setTimeout as sleep } from 'node:timers/promises';
import { resolvePaths } from '../../src/lib/config/paths.ts';
import { createHaproxyBalancer, type HaproxyBalancer } from '../../src/lib/edge/haproxy-balancer.ts';
import type { Route } from '../../src/lib/edge/route.ts';
import { silentLog } from '../../src/lib/report/log.ts';
import type { BackendServer } from './backend-servers.ts';
import { type Haproxy, startHaproxy } from './haproxy.ts';

export type Balanced = { haproxy: Haproxy; balancer: HaproxyBalancer };

/** With these routes in force. */
export async function startBalanced(routes: readonly Route[] = []): Promise<Balanced> {
  const haproxy = await startHaproxy();
  const balancer = openBalancer(haproxy);
  await balancer.apply(routes);
  return { haproxy, balancer };
}

/** As each process of an edge makes it anew. */
export function openBalancer({
  cacheDir,
  directory,
  address,
}: Pick<Haproxy, 'cacheDir' | 'directory' | 'address'>): HaproxyBalancer {
  const paths = resolvePaths({}, { REEVE_CACHE: cacheDir });
  return createHaproxyBalancer(
    { paths, log: silentLog, signal: new AbortController().signal },
    { directory, address },
  );
}

export function routeTo(domain: string, servers: readonly BackendServer[], healthPath?: string): Route {
  const backends = servers.map(({ backend }) => backend);
  return { domain, backends, ...(healthPath === undefined ? {} : { healthPath }) };
}

export async function until(isSo: () => boolean | Promise<boolean>, limitMs = 30_000): Promise<void> {
  const limit = performance.now() + limitMs;
  while (!(await isSo())) {
    if (performance.now() > limit) throw new Error('it never was');
    await sleep(10);
  }
}
