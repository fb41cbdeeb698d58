// The services of this node that have backups, as their desired state names them. Read-only.
import { parseDesired } from '../cluster/desired.ts';
import { desiredKey } from '../cluster/keys.ts';
import { type DesiredService, serviceKey } from '../cluster/wire.ts';
import type { NodeConfig } from '../config/rules.ts';
import type { BaseContext } from '../context.ts';
import { InputError } from '../errors.ts';
import { openStore } from '../store/open.ts';
import { overlap } from './location.ts';

export type BackedUp = DesiredService & { backup: NonNullable<DesiredService['backup']> };

/** In the order of the desired state. Throws InputError where there is none, or none of that name. */
export async function readBackedUp(
  { signal }: Pick<BaseContext, 'signal'>,
  { clusterId, nodeId, ...place }: Pick<NodeConfig, 'store' | 'region' | 'endpoint' | 'clusterId' | 'nodeId'>,
  only?: string,
): Promise<BackedUp[]> {
  const store = await openStore(place, { signal });
  const stored = await store.get(desiredKey(clusterId, nodeId));
  if (stored === undefined)
    throw new InputError(`there is no desired state for node ${nodeId} in ${store.url}`);
  const services = parseDesired(stored.text).services.filter(hasBackup);
  const chosen = services.filter((service) => only === undefined || serviceKey(service) === only);
  if (only !== undefined && chosen.length === 0)
    throw new InputError(`no service ${only} with backups is desired on node ${nodeId}`);
  return chosen;
}

export function hasBackup(service: DesiredService): service is BackedUp {
  return service.backup !== undefined;
}

/** The other one whose backups are among this one's. */
export function findOverlap(service: BackedUp, services: readonly BackedUp[]): string | undefined {
  const key = serviceKey(service);
  const other = services.find((one) => serviceKey(one) !== key && overlap(service.backup, one.backup));
  return other && serviceKey(other);
}
