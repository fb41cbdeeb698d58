// What is known of a service's backups, as its status has it. Pure.
import { compareBytewise } from '../cluster/canonical.ts';
import { type BackupStatus, type DesiredService, serviceKey } from '../cluster/wire.ts';
import { nextBackup } from './plan.ts';
import type { BackupsDocument } from './state.ts';

/** Undefined for a service without backups. */
export function backupStatusOf(
  { services }: Pick<BackupsDocument, 'services'>,
  service: DesiredService,
  now: Date,
): BackupStatus | undefined {
  if (service.backup === undefined) return undefined;
  const known = services[serviceKey(service)];
  const databases = Object.entries(known?.databases ?? {}).sort(([a], [b]) => compareBytewise(a, b));
  return {
    lastRunAt: known?.lastRunAt ?? null,
    lastSuccessAt: known?.lastSuccessAt ?? null,
    lastError: known?.lastError ?? null,
    nextRunAt: nextBackup(service, now)?.toISOString() ?? null,
    databases: databases.map(([name, { lastSuccessAt, sizeBytes }]) => ({ name, lastSuccessAt, sizeBytes })),
  };
}
