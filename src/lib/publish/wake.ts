// Wakes ticks on this machine by the files that path units watch. Best effort: what is missed here, the next tick finds by
// itself.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClusterConfig, Role } from '../config/config.ts';
import type { Paths } from '../config/paths.ts';
import type { BaseContext } from '../context.ts';
import { describeError } from '../errors.ts';

/** Concerns of a cluster's node that a wake starts. */
export type Wakeable = 'reconcile' | 'edge' | 'backup';

/** Those of actions: a result is to be sent, an action to be performed, or an approval to be given to its node. */
export type ActionsWakeable = 'rsync-pull' | 'deploy-action' | 'action';

const roleOf: Readonly<Record<Wakeable, Role>> = {
  reconcile: 'app',
  edge: 'edge',
  backup: 'app',
};

/** Where the store is a directory: who reads it is here, too. Otherwise what this machine itself does as a node. */
export async function wakeTicks(
  { paths, log }: Pick<BaseContext, 'paths' | 'log'>,
  cluster: Pick<ClusterConfig, 'store' | 'nodeId' | 'roles'>,
  concerns: readonly Wakeable[],
): Promise<void> {
  const isHere = (concern: Wakeable): boolean =>
    isLocalStore(cluster) || (cluster.nodeId !== undefined && cluster.roles.includes(roleOf[concern]));
  try {
    for (const concern of concerns.filter(isHere)) await writeWake(paths, concern);
  } catch (error) {
    log.debug(`no tick is woken: ${describeError(error)}`);
  }
}

/** A second one before the tick has begun is the same one. */
export async function writeWake(
  { wakeDir }: Pick<Paths, 'wakeDir'>,
  concern: Wakeable | ActionsWakeable,
): Promise<void> {
  await mkdir(wakeDir, { recursive: true });
  await writeFile(join(wakeDir, concern), '', { mode: 0o600 });
}

/** What is written there is here at once, and a look costs nothing. */
export function isLocalStore({ store }: Pick<ClusterConfig, 'store'>): boolean {
  return store.startsWith('file:');
}
