// backups.json anew, out of what lies in the stores: for when it was lost. A schedule goes on from its newest set.
import { type DesiredService, serviceKey } from '../cluster/wire.ts';
import type { NodeConfig } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { describeError } from '../errors.ts';
import { type Inventory, readInventory } from './inventory.ts';
import { openBackupStore } from './place.ts';
import { isGood } from './retention/policy.ts';
import { type BackupsDocument, backupAnchor, type DatabaseBackups, emptyBackups } from './state.ts';

/** A service whose store cannot be read is left out, and its schedule begins anew. */
export async function rebuildBackups(
  { signal, log }: Pick<Context, 'signal' | 'log'>,
  cluster: NodeConfig,
  services: readonly DesiredService[],
): Promise<BackupsDocument> {
  let document = emptyBackups;
  for (const service of services) {
    if (service.backup === undefined) continue;
    try {
      const { store, prefix } = await openBackupStore({ cluster, signal }, service.backup);
      document = addService(document, serviceKey(service), await readInventory(store, prefix));
    } catch (error) {
      log.warning(`the backups of ${serviceKey(service)} cannot be looked at: ${describeError(error)}`);
    }
  }
  return document;
}

function addService(document: BackupsDocument, key: string, { dumps }: Inventory): BackupsDocument {
  const newest = dumps.at(-1);
  if (newest === undefined) return document;
  const good = dumps.filter(isGood);
  const databases = Object.fromEntries(
    good.map(({ database, at, sizeBytes, level }): [string, DatabaseBackups] => [
      database,
      { lastSuccessAt: at.toISOString(), sizeBytes, level, restoredAt: null, lastError: null },
    ]),
  );
  const service = { lastRunAt: newest.at.toISOString(), lastSuccessAt: null, lastError: null, databases };
  return {
    ...document,
    anchors: { ...document.anchors, [backupAnchor(key)]: newest.at.getTime() },
    services: { ...document.services, [key]: service },
  };
}
