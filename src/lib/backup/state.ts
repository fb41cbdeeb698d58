// backups.json: when each service was backed up last and what came of it. Written by `backup` and its subcommands under their
// lock; read by `status`, `doctor` and the tick, which publishes it.
import { join } from 'node:path';
import type { Paths } from '../config/paths.ts';
import { defineDocument } from '../state/document.ts';
import { isRecord, requireRecordOf } from '../state/shape.ts';
import { type EvidenceLevel, evidenceLevels } from './evidence.ts';

export type DatabaseBackups = {
  /** The fire of the last good dump, ISO. */
  lastSuccessAt: string | null;
  /** Of that dump, compressed. */
  sizeBytes: number | null;
  level: EvidenceLevel | null;
  /** When a dump was last restored to see whether it can be. */
  restoredAt: string | null;
  /** What the last attempt failed with; null after a good one. */
  lastError: string | null;
};

export type ServiceBackups = {
  /** The last attempt's fire; ISO. */
  lastRunAt: string | null;
  /** The last attempt in which every database succeeded; ISO. */
  lastSuccessAt: string | null;
  lastError: string | null;
  databases: Readonly<Record<string, DatabaseBackups>>;
};

/** As the service's definition has it. */
export type KnownSchedule = { schedule: string; timeZone: string | null };

export type BackupsDocument = {
  /** Last fire by `backup:<project>/<service>`, epoch milliseconds. */
  anchors: Readonly<Record<string, number>>;
  /** By `<project>/<service>`: what tells whether a backup is overdue. */
  schedules?: Readonly<Record<string, KnownSchedule>>;
  /** By `<project>/<service>`. */
  services: Readonly<Record<string, ServiceBackups>>;
};

export const emptyBackups: BackupsDocument = { anchors: {}, services: {} };

export const backupsDocument = defineDocument<BackupsDocument>({
  version: 1,
  parse: (raw) => ({
    anchors: requireRecordOf(raw, 'anchors', (value): value is number => Number.isSafeInteger(value)),
    services: requireRecordOf(raw, 'services', isServiceBackups),
    ...(raw['schedules'] !== undefined && { schedules: requireRecordOf(raw, 'schedules', isKnownSchedule) }),
  }),
});

export function backupsPath(paths: Pick<Paths, 'stateDir'>): string {
  return join(paths.stateDir, 'backups.json');
}

/** No clash with a cron service of the same name. */
export function backupAnchor(key: string): string {
  return `backup:${key}`;
}

function isKnownSchedule(value: unknown): value is KnownSchedule {
  return isRecord(value) && typeof value['schedule'] === 'string' && isTextOrNull(value['timeZone']);
}

function isServiceBackups(value: unknown): value is ServiceBackups {
  return (
    isRecord(value) &&
    ['lastRunAt', 'lastSuccessAt', 'lastError'].every((name) => isTextOrNull(value[name])) &&
    isRecord(value['databases']) &&
    Object.values(value['databases']).every(isDatabaseBackups)
  );
}

function isDatabaseBackups(value: unknown): value is DatabaseBackups {
  return (
    isRecord(value) &&
    ['lastSuccessAt', 'restoredAt', 'lastError'].every((name) => isTextOrNull(value[name])) &&
    (value['sizeBytes'] === null || Number.isSafeInteger(value['sizeBytes'])) &&
    (value['level'] === null || evidenceLevels.some((level) => level === value['level']))
  );
}

function isTextOrNull(value: unknown): boolean {
  return value === null || typeof value === 'string';
}
