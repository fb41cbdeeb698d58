// How each database's backups stand, for people: a run that ended well says nothing of one that has failed for days.
import { formatBytes } from '../backup/bytes.ts';
import { backupsDocument, backupsPath, type DatabaseBackups, type ServiceBackups } from '../backup/state.ts';
import type { Context } from '../context.ts';
import { foldLines, renderTable } from '../report/table.ts';
import { readDocument } from '../state/document.ts';
import { ago } from './ago.ts';

export type BackupsView = Readonly<Record<string, ServiceBackups>>;

/** None where there are none, or where what is known of them was damaged, which the next run tells. */
export async function readBackupsView({ paths, log }: Context, now: Date): Promise<BackupsView> {
  const read = await readDocument(backupsPath(paths), backupsDocument, { now, log, repair: false });
  return read.kind === 'ok' || read.kind === 'recovered' ? read.value.services : {};
}

export function isBackupWrong(view: BackupsView): boolean {
  return Object.values(view).some(
    ({ lastError, databases }) =>
      lastError !== null || Object.values(databases).some((database) => database.lastError !== null),
  );
}

export function renderBackups(view: BackupsView, now: Date): string[] {
  const rows = Object.entries(view).flatMap(([key, service]) => renderService(key, service, now));
  return rows.length === 0
    ? []
    : renderTable(['BACKUP OF', 'DATABASE', 'LAST GOOD', 'SIZE', 'EVIDENCE', 'ERROR'], rows);
}

function renderService(key: string, { databases, lastError }: ServiceBackups, now: Date): string[][] {
  const known = Object.entries(databases);
  const isTold = lastError === null || known.some(([, database]) => database.lastError !== null);
  return [
    ...known.map(([name, database]) => [key, JSON.stringify(name), ...renderDatabase(database, now)]),
    ...(isTold ? [] : [[key, '', '', '', '', foldLines(lastError)]]),
  ];
}

function renderDatabase(
  { lastSuccessAt, sizeBytes, level, lastError }: DatabaseBackups,
  now: Date,
): string[] {
  return [
    lastSuccessAt === null ? 'never' : ago(lastSuccessAt, now),
    sizeBytes === null ? '' : formatBytes(sizeBytes),
    level ?? '',
    foldLines(lastError ?? ''),
  ];
}
