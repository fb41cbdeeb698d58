// Wakes ticks on this machine by the files that path units watch, where the store is a directory: who reads it is here, too.
// Best effort: what is missed here, the next tick finds by itself.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClusterConfig } from '../config/config.ts';
import type { BaseContext } from '../context.ts';
import { describeError } from '../errors.ts';

export async function wakeTicks(
  { paths, log }: Pick<BaseContext, 'paths' | 'log'>,
  cluster: Pick<ClusterConfig, 'store'>,
  concerns: readonly ('reconcile' | 'edge')[],
): Promise<void> {
  if (!isLocalStore(cluster)) return;
  try {
    await mkdir(paths.wakeDir, { recursive: true });
    for (const concern of concerns) await writeFile(join(paths.wakeDir, concern), '', { mode: 0o600 });
  } catch (error) {
    log.debug(`no tick is woken: ${describeError(error)}`);
  }
}

/** What is written there is here at once, and a look costs nothing. */
export function isLocalStore({ store }: Pick<ClusterConfig, 'store'>): boolean {
  return store.startsWith('file:');
}
