// Tells nodes that their desired state has changed. Best effort: what is missed here, the next tick finds by itself.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClusterConfig } from '../config/config.ts';
import type { BaseContext } from '../context.ts';
import { describeError } from '../errors.ts';

/** Concerns whose path units watch for a wake. */
const woken = ['reconcile', 'edge'] as const;

export async function wakeNodes(
  ctx: Pick<BaseContext, 'paths' | 'log'>,
  cluster: Pick<ClusterConfig, 'store' | 'notify'>,
): Promise<void> {
  if (cluster.store.startsWith('file:')) await wakeThisMachine(ctx);
  if (cluster.notify === 'sns')
    ctx.log.warning('no notice is sent over sns: nodes find the change at their next tick');
}

/** The store is a directory here, so a node that reads it is here, too. */
async function wakeThisMachine({ paths, log }: Pick<BaseContext, 'paths' | 'log'>): Promise<void> {
  try {
    await mkdir(paths.wakeDir, { recursive: true });
    for (const concern of woken) await writeFile(join(paths.wakeDir, concern), '', { mode: 0o600 });
  } catch (error) {
    log.debug(`no tick is woken: ${describeError(error)}`);
  }
}
