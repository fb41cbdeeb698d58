// Where the balancer's parts are: its file is the edge's cache, its sockets are in the directory of its unit.
import { join } from 'node:path';
import type { HaproxyConfig } from '../config/config.ts';
import type { Paths } from '../config/paths.ts';

export const balancerService = 'reeve-balancer.service';

/** What HAProxy starts from. */
export function balancerFile({ cacheDir }: Pick<Paths, 'cacheDir'>): string {
  return join(cacheDir, 'balancer/haproxy.cfg');
}

export function runtimeSocket({ directory }: Pick<HaproxyConfig, 'directory'>): string {
  return join(directory, 'runtime.sock');
}

export function masterSocket({ directory }: Pick<HaproxyConfig, 'directory'>): string {
  return join(directory, 'master.sock');
}
