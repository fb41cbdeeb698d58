// Where a release goes: the store and the cluster that the configuration names, and the service that a person names.
import type { ClusterConfig } from '../config/config.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors.ts';
import { namePattern } from '../ids.ts';
import { openStore } from '../store/open.ts';
import type { Target } from './gather.ts';

export async function openTarget(ctx: Context, cluster: ClusterConfig): Promise<Target> {
  const store = await openStore(cluster.store, { signal: ctx.signal });
  return { store, clusterId: cluster.clusterId };
}

/** `PROJECT/SERVICE` as a person types it. Throws UsageError. */
export function requireServiceKey(text: string): string {
  const [project = '', service = '', ...more] = text.split('/');
  if (more.length === 0 && namePattern.test(project) && namePattern.test(service)) return text;
  throw new UsageError(`"${text}" names no service: write PROJECT/SERVICE`);
}

export function requireProject(text: string): string {
  if (namePattern.test(text)) return text;
  throw new UsageError(`"${text}" is no project name`);
}
