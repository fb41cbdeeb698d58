// What an attempt makes of backups.json. Pure.
import { isDeepStrictEqual } from 'node:util';
import { type DesiredService, serviceKey } from '../cluster/wire.ts';
import {
  type BackupsDocument,
  backupAnchor,
  type DatabaseBackups,
  type KnownSchedule,
  type ServiceBackups,
} from './state.ts';

/** What came of one database. */
export type DatabaseResult =
  | {
      kind: 'dumped';
      database: string;
      key: string;
      sizeBytes: number;
      rawBytes: number;
      sha256: string;
      durationMs: number;
      tables: readonly { schema: string; table: string; rows: number }[];
    }
  | { kind: 'failed'; database: string; error: string };

export type Attempt = {
  key: string;
  fire: Date;
  isScheduled: boolean;
  databases: readonly DatabaseResult[];
  /** What failed for all of them, or beside them. */
  error?: string;
  /** Databases were listed: others than these are gone. */
  isListed: boolean;
};

const nothingYet: DatabaseBackups = {
  ...{ lastSuccessAt: null, sizeBytes: null, level: null, restoredAt: null, lastError: null },
};

const neverRun: ServiceBackups = { lastRunAt: null, lastSuccessAt: null, lastError: null, databases: {} };

export function recordAttempt(document: BackupsDocument, attempt: Attempt): BackupsDocument {
  const { key, fire, isScheduled } = attempt;
  const before = document.services[key] ?? neverRun;
  const error = describeFailures(attempt);
  const at = fire.toISOString();
  const service: ServiceBackups = {
    lastRunAt: at,
    lastSuccessAt: error === undefined ? at : before.lastSuccessAt,
    lastError: error ?? null,
    databases: recordDatabases(before.databases, attempt),
  };
  return {
    ...document,
    anchors: isScheduled ? { ...document.anchors, [backupAnchor(key)]: fire.getTime() } : document.anchors,
    services: { ...document.services, [key]: service },
  };
}

/** Undefined where all went well. */
export function describeFailures({
  error,
  databases,
}: Pick<Attempt, 'error' | 'databases'>): string | undefined {
  const failed = databases.flatMap((result) =>
    result.kind === 'failed' ? [`database ${JSON.stringify(result.database)}: ${result.error}`] : [],
  );
  const all = [...(error === undefined ? [] : [error]), ...failed];
  return all.length === 0 ? undefined : all.join('; ');
}

function recordDatabases(
  before: ServiceBackups['databases'],
  { databases, fire, isListed }: Attempt,
): ServiceBackups['databases'] {
  const records = new Map(isListed ? [] : Object.entries(before));
  for (const result of databases) {
    const { database } = result;
    // Of a map of names that anybody may have chosen: `constructor` is none that it has of itself.
    const known = (Object.hasOwn(before, database) ? before[database] : undefined) ?? nothingYet;
    records.set(
      database,
      result.kind === 'failed'
        ? { ...known, lastError: result.error }
        : {
            ...known,
            lastSuccessAt: fire.toISOString(),
            sizeBytes: result.sizeBytes,
            level: 'readable',
            lastError: null,
          },
    );
  }
  return Object.fromEntries(records);
}

/** The schedules of these services begin at this instant. */
export function recordAnchors(document: BackupsDocument, keys: readonly string[], at: Date): BackupsDocument {
  if (keys.length === 0) return document;
  const added = keys.map((key) => [backupAnchor(key), at.getTime()] as const);
  return { ...document, anchors: { ...document.anchors, ...Object.fromEntries(added) } };
}

/** Without the services that are no longer desired here. `known`: desired ones, those that cannot be read among them. */
export function forgetOthers(document: BackupsDocument, known: ReadonlySet<string>): BackupsDocument {
  const anchorNames = new Set([...known].map(backupAnchor));
  const anchors = Object.entries(document.anchors).filter(([name]) => anchorNames.has(name));
  const services = Object.entries(document.services).filter(([key]) => known.has(key));
  const isSame =
    anchors.length === Object.keys(document.anchors).length &&
    services.length === Object.keys(document.services).length;
  if (isSame) return document;
  return { ...document, anchors: Object.fromEntries(anchors), services: Object.fromEntries(services) };
}

/** The schedules of these services, and those known before of others that are desired and cannot be read. */
export function recordSchedules(
  document: BackupsDocument,
  services: readonly DesiredService[],
  known: ReadonlySet<string> | undefined,
): BackupsDocument {
  const { schedules = {} } = document;
  const read = new Set(services.map(serviceKey));
  const unread = Object.entries(schedules).filter(
    ([key]) => !read.has(key) && (known === undefined || known.has(key)),
  );
  const own = services.flatMap((service): [string, KnownSchedule][] => {
    if (service.backup === undefined) return [];
    const { schedule, timeZone = null } = service.backup;
    return [[serviceKey(service), { schedule, timeZone }]];
  });
  const recorded = Object.fromEntries([...unread, ...own]);
  return isDeepStrictEqual(recorded, schedules) ? document : { ...document, schedules: recorded };
}
