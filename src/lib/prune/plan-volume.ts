// Whether a volume could be made again from backups. Pure.
import type { Inventory } from '../backup/inventory.ts';
import { isGood } from '../backup/retention/policy.ts';
import type { ServiceBackups } from '../backup/state.ts';

/**
 * Why the last set is no backup of a volume of this age; undefined where it is one. `recorded` is what the last attempt has left,
 * if the service is still desired.
 */
export function findBackupFault(
  { dumps, sets }: Inventory,
  recorded: ServiceBackups | undefined,
  createdAt: Date | undefined,
): string | undefined {
  if (recorded !== undefined && recorded.lastError !== null)
    return `the last attempt failed: ${recorded.lastError}`;
  const set = sets.findLast(({ manifest }) => manifest !== undefined);
  if (set?.manifest === undefined) return 'it has none';
  if (createdAt === undefined) return `the last one is of ${set.stamp}, and the volume's age is unknown`;
  if (set.at <= createdAt) return `the last one is of ${set.stamp}, the volume of ${createdAt.toISOString()}`;
  const [failed] = set.manifest.failures;
  if (failed !== undefined) return `that of ${set.stamp} is not whole: ${failed.error}`;
  const good = new Set(dumps.filter(isGood).map(({ key }) => key));
  const bad = set.manifest.databases.find(({ key }) => !good.has(key));
  if (bad === undefined) return undefined;
  const fault = dumps.find(({ key }) => key === bad.key)?.fault ?? 'it is not there';
  return `that of ${set.stamp} is not whole: ${JSON.stringify(bad.database)}: ${fault}`;
}
