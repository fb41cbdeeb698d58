import { describe, expect, it } from 'vitest';
import { judgeFreshness } from '../../../src/lib/backup/freshness.ts';
import { forgetOthers, recordSchedules } from '../../../src/lib/backup/record.ts';
import {
  type BackupsDocument,
  backupsDocument,
  type DatabaseBackups,
  emptyBackups,
} from '../../../src/lib/backup/state.ts';
import { isBackupWrong } from '../../../src/lib/status/backups.ts';
import { aDatabase } from '../../support/builders.ts';

const known = (lastSuccessAt: string | null, lastError: string | null = null): DatabaseBackups => ({
  ...{ lastSuccessAt, sizeBytes: 1000, level: 'readable', restoredAt: null, lastError },
});

function aDocument(
  databases: Readonly<Record<string, DatabaseBackups>>,
  schedule = '0 3 * * *',
  timeZone: string | null = null,
): BackupsDocument {
  const errors = Object.values(databases).flatMap(({ lastError }) => lastError ?? []);
  const lastError = errors[0] ?? null;
  return {
    anchors: { 'backup:blog/db': Date.parse('2026-06-01T03:00:00Z') },
    schedules: { 'blog/db': { schedule, timeZone } },
    services: { 'blog/db': { lastRunAt: null, lastSuccessAt: null, lastError, databases } },
  };
}

const statesOf = (document: BackupsDocument, now: string): [string, string][] =>
  judgeFreshness(document, new Date(now)).flatMap(({ databases, key, state }) => [
    [key, state] as [string, string],
    ...databases.map((database): [string, string] => [database.name, database.state]),
  ]);

describe('a database’s backups', () => {
  it('are told by their last good one and their last attempt, each by itself (O21)', () => {
    const document = aDocument({
      a: known('2026-06-04T03:00:00.000Z'),
      b: known('2026-06-01T03:00:00.000Z', 'refused'),
      c: known('2026-06-01T03:00:00.000Z'),
    });
    expect(statesOf(document, '2026-06-04T10:00:00Z')).toEqual([
      ['blog/db', 'failing'],
      ['a', 'fresh'],
      ['b', 'failing'],
      ['c', 'stale'],
    ]);
  });

  it.each([
    ['one fire may be under way', '0 3 * * *', null, '2026-06-03T03:00:00Z', '2026-06-05T02:59:00Z', 'fresh'],
    ['twice the interval', '0 3 * * *', null, '2026-06-03T03:00:00Z', '2026-06-05T03:00:00Z', 'stale'],
    [
      'nothing is due at a weekend',
      '0 3 * * 1-5',
      null,
      '2026-06-05T03:00:00Z',
      '2026-06-08T23:00:00Z',
      'fresh',
    ],
    ['but after it', '0 3 * * 1-5', null, '2026-06-05T03:00:00Z', '2026-06-09T03:00:00Z', 'stale'],
    ['a zone', '0 3 * * *', 'America/New_York', '2026-06-03T07:00:00Z', '2026-06-05T06:59:00Z', 'fresh'],
    ['of a zone', '0 3 * * *', 'America/New_York', '2026-06-03T07:00:00Z', '2026-06-05T07:00:00Z', 'stale'],
    ['a clock that was ahead', '0 3 * * *', null, '2027-06-03T03:00:00Z', '2026-06-05T03:00:00Z', 'fresh'],
    ['no schedule', 'nonsense', null, '2020-06-03T03:00:00Z', '2026-06-05T03:00:00Z', 'fresh'],
  ])('are stale once two fires have passed: %s', (_, schedule, zone, at, now, state) => {
    const document = aDocument({ app: known(at) }, schedule, zone);
    expect(statesOf(document, now)).toEqual([
      ['blog/db', 'fresh'],
      ['app', state],
    ]);
  });

  it('are broken where the newest was looked at and is not whole, until another one is made (O21)', () => {
    const at = '2026-06-04T03:00:00.000Z';
    const broken = { ...known(at), level: 'broken' as const };
    const document = aDocument({ a: broken, b: { ...broken, lastError: 'refused' }, c: known(at) });
    expect(statesOf(document, '2026-06-04T10:00:00Z')).toEqual([
      ['blog/db', 'failing'],
      ['a', 'broken'],
      ['b', 'failing'],
      ['c', 'fresh'],
    ]);
    expect(isBackupWrong(judgeFreshness(aDocument({ a: broken }), new Date('2026-06-04T10:00:00Z')))).toBe(
      true,
    );
  });

  it('that were never made are waited for from where the schedule began', () => {
    const document = { ...aDocument({}), services: {} };
    expect(statesOf(document, '2026-06-03T02:00:00Z')).toEqual([['blog/db', 'waiting']]);
    expect(statesOf(document, '2026-06-03T03:00:00Z')).toEqual([['blog/db', 'stale']]);
    expect(statesOf({ ...document, anchors: {} }, '2026-06-03T03:00:00Z')).toEqual([['blog/db', 'waiting']]);
    expect(judgeFreshness(emptyBackups, new Date())).toEqual([]);
  });
});

describe('schedules in backups.json', () => {
  const backup = { schedule: '0 3 * * *', retentionDays: 7, bucket: 'b', prefix: 'p/' };
  const schedules = { 'blog/db': { schedule: '0 3 * * *', timeZone: null } };

  it('follow the desired services, and are written only where they differ', () => {
    const recorded = recordSchedules(emptyBackups, [aDatabase({ backup })], new Set(['blog/db']));
    expect(recorded).toEqual({ ...emptyBackups, schedules });
    expect(recordSchedules(recorded, [aDatabase({ backup })], new Set(['blog/db']))).toBe(recorded);
    expect(recordSchedules(recorded, [aDatabase()], new Set(['blog/db'])).schedules).toEqual({});
    // Of one that cannot be read nothing is forgotten.
    expect(recordSchedules(recorded, [], new Set(['blog/db']))).toBe(recorded);
    expect(recordSchedules(recorded, [], undefined)).toBe(recorded);
    expect(recordSchedules(recorded, [], new Set()).schedules).toEqual({});
    expect(forgetOthers(recorded, new Set(['blog/db'])).schedules).toEqual(schedules);
  });

  it('are read back, and need not be there', () => {
    const plain = { anchors: {}, services: {} };
    expect(backupsDocument.parse({ ...plain, version: 1 })).toEqual(plain);
    expect(backupsDocument.parse({ ...plain, version: 1, schedules })).toEqual({ ...plain, schedules });
    expect(() =>
      backupsDocument.parse({ ...plain, version: 1, schedules: { a: { schedule: 1 } } }),
    ).toThrow();
  });
});
