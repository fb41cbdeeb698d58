// Where a release goes: the store and the cluster that the configuration names.
import type { ClusterConfig } from '../config/config.ts';
import type { Context } from '../context.ts';
import { openStore } from '../store/open.ts';
import type { Target } from './gather.ts';

export async function openTarget(ctx: Context, cluster: ClusterConfig): Promise<Target> {
  const store = await openStore(cluster, { signal: ctx.signal });
  return { store, clusterId: cluster.clusterId };
}
