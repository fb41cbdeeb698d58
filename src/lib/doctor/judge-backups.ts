// Backups: is there a good one in time, has any been restored, would one disk take both, can its store be reached. Pure.
import type { DatabaseFreshness, ServiceFreshness } from '../backup/freshness.ts';
import { formatDuration } from '../time.ts';
import { type Finding, failure, listNames, ok, orOk, plural, warning } from './finding.ts';

export type BackupFacts = {
  /** `PROJECT/SERVICE` */
  key: string;
  /** The store. */
  where: string;
  freshness: ServiceFreshness | undefined;
  /** Another service whose backups are among these. */
  overlap: string | undefined;
  policyFault: string | undefined;
  storeError: string | undefined;
  /** A directory on a device that the database's own files are on. */
  isOnSameDisk: boolean;
};

export function judgeBackups(services: readonly BackupFacts[], now: Date): Finding[] {
  if (services.length === 0) return [];
  const databases = services.flatMap(({ freshness }) => freshness?.databases ?? []);
  const waiting = services.filter(({ freshness }) => freshness?.state === 'waiting').length;
  const begun = services.length - waiting;
  const fine = [
    ...(begun === 0
      ? []
      : [`${plural(databases.length, 'database')} of ${plural(begun, 'service')}, backed up in time`]),
    ...(waiting === 0 ? [] : [`${plural(waiting, 'service')} before the first fire of the schedule`]),
  ].join('; ');
  return orOk(
    services.flatMap((service) => [
      ...judgeStoring(service),
      ...judgeAge(service, now),
      ...judgeEvidence(service),
    ]),
    ok(fine),
  );
}

function judgeStoring({
  key,
  where,
  overlap,
  policyFault,
  storeError,
  isOnSameDisk,
}: BackupFacts): Finding[] {
  const place = `${key} in ${where}`;
  return [
    ...(storeError === undefined
      ? []
      : [
          failure(storeError, {
            where: place,
            fix: 'mount the directory, or correct backup.bucket and its rights',
          }),
        ]),
    ...(policyFault === undefined
      ? []
      : [
          failure(`its retention cannot be followed: ${policyFault}`, {
            where: key,
            fix: 'deploy another policy',
          }),
        ]),
    ...(overlap === undefined
      ? []
      : [
          failure(`its backups are among those of ${overlap}: nothing old is removed`, {
            where: place,
            fix: 'deploy it with a backup.prefix of its own',
          }),
        ]),
    ...(isOnSameDisk
      ? [
          warning('its backups are on the disk of the database itself', {
            where: place,
            fix: 'name a bucket or a directory on another disk in backup.bucket',
          }),
        ]
      : []),
  ];
}

function judgeAge({ key, freshness }: BackupFacts, now: Date): Finding[] {
  if (freshness === undefined) return [];
  const { state, lastError, databases } = freshness;
  const fix = `\`reeve history ${key}\` tells more; then \`reeve backup --now --service ${key}\``;
  const renew = `\`reeve backup list --service ${key}\` has those that are whole; then \`reeve backup --now --service ${key}\``;
  const wrong = databases.flatMap((database) => {
    const what = describeWrong(database, now);
    const where = `${key}, database ${JSON.stringify(database.name)}`;
    return what === undefined
      ? []
      : [failure(what, { where, fix: database.state === 'broken' ? renew : fix })];
  });
  if (wrong.length > 0) return wrong;
  if (state === 'failing') return [failure(`its last backup failed: ${lastError}`, { where: key, fix })];
  return state === 'stale' ? [failure('it has never been backed up', { where: key, fix })] : [];
}

function describeWrong(
  { state, lastError, lastSuccessAt }: DatabaseFreshness,
  now: Date,
): string | undefined {
  const age =
    lastSuccessAt === null
      ? 'it has no good one'
      : `its last good one is ${formatDuration(Math.max(0, now.getTime() - Date.parse(lastSuccessAt)))} old`;
  if (state === 'failing') return `its last backup failed, and ${age}: ${lastError}`;
  if (state === 'broken') return 'its newest dump was looked at, and is not whole';
  return state === 'stale' ? `it is overdue: ${age}` : undefined;
}

/** A dump that was read to its end is still no database. */
function judgeEvidence({ key, freshness }: BackupFacts): Finding[] {
  const unproven = (freshness?.databases ?? []).filter(
    ({ lastSuccessAt, restoredAt }) => lastSuccessAt !== null && restoredAt === null,
  );
  if (unproven.length === 0) return [];
  const names = listNames(unproven.map(({ name }) => JSON.stringify(name)));
  return [
    warning(`no backup of ${names} was ever restored`, {
      where: key,
      fix: `\`reeve backup verify --restore --service ${key}\``,
    }),
  ];
}
