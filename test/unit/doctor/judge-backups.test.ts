import { describe, expect, it } from 'vitest';
import { judgeFreshness } from '../../../src/lib/backup/freshness.ts';
import type { DatabaseBackups } from '../../../src/lib/backup/state.ts';
import { type BackupFacts, judgeBackups } from '../../../src/lib/doctor/judge-backups.ts';

const now = new Date('2026-06-04T10:00:00Z');
const good: DatabaseBackups = {
  ...{ lastSuccessAt: '2026-06-04T03:00:00.000Z', sizeBytes: 1, level: 'restored' },
  ...{ restoredAt: '2026-06-01T03:00:00.000Z', lastError: null },
};

function facts(
  databases: Record<string, DatabaseBackups>,
  overrides: Partial<BackupFacts> = {},
): BackupFacts {
  const lastError = Object.values(databases).find((one) => one.lastError !== null)?.lastError ?? null;
  const [freshness] = judgeFreshness(
    {
      anchors: { 'backup:blog/db': Date.parse('2026-06-01T03:00:00Z') },
      schedules: { 'blog/db': { schedule: '0 3 * * *', timeZone: null } },
      services: { 'blog/db': { lastRunAt: null, lastSuccessAt: null, lastError, databases } },
    },
    now,
  );
  return {
    ...{
      key: 'blog/db',
      where: 'file:///var/backups',
      freshness,
      overlap: undefined,
      policyFault: undefined,
    },
    ...{ storeError: undefined, isOnSameDisk: false },
    ...overrides,
  };
}

const fix = '`reeve history blog/db` tells more; then `reeve backup --now --service blog/db`';

describe('backups', () => {
  it('that are in time and were restored are well', () => {
    expect(judgeBackups([facts({ app: good })], now)).toEqual([
      { level: 'ok', what: '1 database of 1 service, backed up in time' },
    ]);
    expect(judgeBackups([], now)).toEqual([]);
  });

  it('that fail or are overdue are told by database, with the age of the last good one (O21)', () => {
    const app = { ...good, lastError: 'refused', lastSuccessAt: '2026-06-01T10:00:00.000Z' };
    const logs = { ...good, lastSuccessAt: '2026-06-02T03:00:00.000Z' };
    expect(judgeBackups([facts({ app, logs, fine: good })], now)).toEqual([
      {
        ...{ level: 'failure', where: 'blog/db, database "app"', fix },
        what: 'its last backup failed, and its last good one is 3d old: refused',
      },
      {
        ...{ level: 'failure', where: 'blog/db, database "logs"', fix },
        what: 'it is overdue: its last good one is 2d 7h old',
      },
    ]);
  });

  it('of which the newest is not whole are told, and where the good ones are', () => {
    const app = { ...good, level: 'broken' as const };
    expect(judgeBackups([facts({ app, logs: good })], now)).toEqual([
      {
        ...{ level: 'failure', where: 'blog/db, database "app"' },
        what: 'its newest dump was looked at, and is not whole',
        fix: '`reeve backup list --service blog/db` has those that are whole; then `reeve backup --now --service blog/db`',
      },
    ]);
  });

  it('that no fire has come for are not called backed up', () => {
    const [freshness] = judgeFreshness(
      {
        anchors: { 'backup:blog/db': now.getTime() },
        schedules: { 'blog/db': { schedule: '0 3 * * *', timeZone: null } },
        services: {},
      },
      now,
    );
    expect(judgeBackups([facts({}, { freshness }), facts({ app: good })], now)).toEqual([
      {
        level: 'ok',
        what: '1 database of 1 service, backed up in time; 1 service before the first fire of the schedule',
      },
    ]);
    expect(judgeBackups([facts({}, { freshness })], now)).toEqual([
      { level: 'ok', what: '1 service before the first fire of the schedule' },
    ]);
  });

  it('that were never made are told', () => {
    expect(judgeBackups([facts({})], now)).toEqual([
      { level: 'failure', what: 'it has never been backed up', where: 'blog/db', fix },
    ]);
  });

  it('that nobody has restored, or that one disk would take with the database, are warned of', () => {
    const app = { ...good, restoredAt: null };
    const [evidence] = judgeBackups([facts({ app, logs: good })], now);
    expect(evidence).toEqual({
      ...{ level: 'warning', what: 'no backup of "app" was ever restored', where: 'blog/db' },
      fix: '`reeve backup verify --restore --service blog/db`',
    });
    const [disk] = judgeBackups([facts({ app: good }, { isOnSameDisk: true })], now);
    expect(disk).toMatchObject({
      ...{ level: 'warning', what: 'its backups are on the disk of the database itself' },
      where: 'blog/db in file:///var/backups',
    });
  });

  it.each([
    [{ storeError: 'cannot use store "/mnt"' }, 'cannot use store "/mnt"'],
    [{ policyFault: 'retention is empty' }, 'its retention cannot be followed: retention is empty'],
    [{ overlap: 'blog/other' }, 'its backups are among those of blog/other: nothing old is removed'],
  ])(
    'of which old ones cannot be removed, or new ones kept, are failures: %j (O28, O30)',
    (overrides, what) => {
      expect(judgeBackups([facts({ app: good }, overrides)], now)).toEqual([
        expect.objectContaining({ level: 'failure', what }),
      ]);
    },
  );
});
