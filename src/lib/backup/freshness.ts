// Whether what could be restored is as new as its schedule promises: what matters, where a last run that went well says
// nothing. Pure.
import { nextFire, parseSchedule, type Schedule } from '../schedule/schedule.ts';
import { type BackupsDocument, backupAnchor, type DatabaseBackups, type KnownSchedule } from './state.ts';

/**
 * `stale`: two fires have passed since the last good one. `failing`: the last attempt failed, however old the last good one is.
 * `broken`: the dump that was good last was looked at later and is not whole.
 */
export type Freshness = 'fresh' | 'waiting' | 'stale' | 'failing' | 'broken';

export type DatabaseFreshness = DatabaseBackups & { name: string; state: Freshness };

export type ServiceFreshness = {
  key: string;
  /** Of the service as a whole: `stale` where it has never been backed up and should have been. */
  state: Freshness;
  lastError: string | null;
  databases: readonly DatabaseFreshness[];
};

/** Of every service that has backups, in the order of their names. */
export function judgeFreshness(document: BackupsDocument, now: Date): ServiceFreshness[] {
  const { services, schedules = {} } = document;
  const keys = [...new Set([...Object.keys(services), ...Object.keys(schedules)])].sort();
  return keys.map((key) => judgeService(document, key, now));
}

function judgeService(
  { services, schedules, anchors }: BackupsDocument,
  key: string,
  now: Date,
): ServiceFreshness {
  const isOverdue = overdueBy(schedules?.[key], now);
  const { lastError = null, databases = {} } = services[key] ?? {};
  const told = Object.entries(databases).map(([name, about]): DatabaseFreshness => {
    const { lastSuccessAt } = about;
    const since = lastSuccessAt === null ? undefined : Date.parse(lastSuccessAt);
    const state = stateOf(about.lastError, isOverdue, since);
    return { name, ...about, state: state === 'failing' || about.level !== 'broken' ? state : 'broken' };
  });
  if (told.length > 0)
    return { key, state: lastError === null ? 'fresh' : 'failing', lastError, databases: told };
  const state = stateOf(lastError, isOverdue, anchors[backupAnchor(key)]);
  return { key, state: state === 'fresh' ? 'waiting' : state, lastError, databases: [] };
}

function stateOf(
  error: string | null,
  isOverdue: (since: number) => boolean,
  since: number | undefined,
): Freshness {
  if (error !== null) return 'failing';
  if (since === undefined) return 'waiting';
  return isOverdue(since) ? 'stale' : 'fresh';
}

/** The first fire after an instant may be under way; with the second, twice the schedule's interval has passed. */
function overdueBy(known: KnownSchedule | undefined, now: Date): (since: number) => boolean {
  const parsed = parseSchedule(known?.schedule ?? '');
  if ('fault' in parsed) return () => false;
  const next = (after: Date): Date | undefined => fireAfter(parsed.schedule, after, known?.timeZone);
  return (since) => {
    const first = next(new Date(since));
    const second = first && next(first);
    return second !== undefined && second <= now;
  };
}

function fireAfter(schedule: Schedule, after: Date, timeZone: string | null | undefined): Date | undefined {
  return nextFire(schedule, after, timeZone ?? undefined);
}
