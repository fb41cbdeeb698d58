// How each database's backups stand, for people: a run that ended well says nothing of one that has failed for days.
import { formatBytes } from '../backup/bytes.ts';
import type { DatabaseFreshness, ServiceFreshness } from '../backup/freshness.ts';
import { readRecorded } from '../backup/recorded.ts';
import type { Context } from '../context.ts';
import { foldLines, renderTable } from '../report/table.ts';
import { ago } from './ago.ts';

export type BackupsView = readonly ServiceFreshness[];

/** None where there are none, or where what is known of them was damaged, which the next run tells. */
export async function readBackupsView(ctx: Context, now: Date): Promise<BackupsView> {
  const document = await readRecorded(ctx);
  if (Object.keys({ ...document.services, ...document.schedules }).length === 0) return [];
  // What follows schedules is loaded only where there are any.
  const { judgeFreshness } = await import('../backup/freshness.ts');
  return judgeFreshness(document, now);
}

export function isBackupWrong(view: BackupsView): boolean {
  return view.some(({ state, databases }) =>
    [state, ...databases.map((database) => database.state)].some(
      (one) => one === 'stale' || one === 'failing' || one === 'broken',
    ),
  );
}

/** As `--json` has it, by service and by database. */
export function describeBackups(view: BackupsView, now: Date): object {
  return Object.fromEntries(
    view.map(({ key, state, lastError, databases }) => [
      key,
      {
        state,
        lastError,
        databases: Object.fromEntries(
          databases.map(({ name, ...database }) => [name, { ...database, ageMs: ageOf(database, now) }]),
        ),
      },
    ]),
  );
}

function ageOf({ lastSuccessAt }: Pick<DatabaseFreshness, 'lastSuccessAt'>, now: Date): number | null {
  return lastSuccessAt === null ? null : now.getTime() - Date.parse(lastSuccessAt);
}

export function renderBackups(view: BackupsView, now: Date): string[] {
  const rows = view.flatMap((service) => renderService(service, now));
  return rows.length === 0
    ? []
    : renderTable(['BACKUP OF', 'DATABASE', 'STATE', 'LAST GOOD', 'SIZE', 'EVIDENCE', 'ERROR'], rows);
}

function renderService({ key, state, databases, lastError }: ServiceFreshness, now: Date): string[][] {
  const isTold = lastError === null || databases.some((database) => database.lastError !== null);
  const isAlone = databases.length === 0;
  return [
    ...databases.map((database) => [key, JSON.stringify(database.name), ...renderDatabase(database, now)]),
    ...(isTold && !isAlone
      ? []
      : [[key, '', state, isAlone ? 'never' : '', '', '', foldLines(lastError ?? '')]]),
  ];
}

function renderDatabase(
  { state, lastSuccessAt, sizeBytes, level, lastError }: DatabaseFreshness,
  now: Date,
): string[] {
  return [
    state,
    lastSuccessAt === null ? 'never' : ago(lastSuccessAt, now),
    sizeBytes === null ? '' : formatBytes(sizeBytes),
    level ?? '',
    state === 'broken'
      ? 'that one is not whole: `reeve backup list` has those that are'
      : foldLines(lastError ?? ''),
  ];
}
