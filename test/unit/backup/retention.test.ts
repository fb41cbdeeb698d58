import { describe, expect, it } from 'vitest';
import type { Dump } from '../../../src/lib/backup/inventory.ts';
import { stampOf } from '../../../src/lib/backup/names.ts';
import { planRetention, type RetentionPolicy } from '../../../src/lib/backup/retention/policy.ts';
import { nextFire, parseSchedule } from '../../../src/lib/schedule/schedule.ts';
import { aDump, aManifest, anInventory, aSet } from '../../support/inventories.ts';

const now = new Date('2026-06-04T04:00:00Z');
const aWeek: RetentionPolicy = { retentionDays: 7 };

type Given = { policy?: RetentionPolicy; at?: Date; failing?: readonly string[] };

function decide(dumps: readonly Dump[], { policy = aWeek, at = now, failing = [] }: Given = {}) {
  return planRetention(anInventory(dumps), { policy, now: at, failing: new Set(failing) });
}

/** `STAMP + reasons` of what stays, `STAMP - reasons` of what goes, newest first; of 03:00 only the day. */
function tell(dumps: readonly Dump[], given: Given = {}): string[] {
  return decide(dumps, given).flatMap(({ decisions }) =>
    decisions.toReversed().map(({ dump, isKept, reasons }) => {
      const stamp = dump.stamp.replace('T03-00-00Z', '');
      return `${stamp} ${isKept ? '+' : '-'} ${reasons.join(', ')}`;
    }),
  );
}

const days = (from: string, count: number): Dump[] =>
  Array.from({ length: count }, (_, day) => {
    const at = new Date(Date.parse(`${from}T03:00:00Z`) - day * 86_400_000);
    return aDump(at.toISOString());
  });

describe('retention by days', () => {
  it('removes what is strictly older, but the one that reaches back so far (L89)', () => {
    const at = new Date('2026-06-04T03:00:00Z');
    expect(tell(days('2026-06-04', 11), { at })).toEqual([
      '2026-06-04 + last good, not older than 7 days',
      ...[
        '2026-06-03',
        '2026-06-02',
        '2026-06-01',
        '2026-05-31',
        '2026-05-30',
        '2026-05-29',
        '2026-05-28',
      ].map((day) => `${day} + not older than 7 days`),
      '2026-05-27 + the state of 7 days ago',
      '2026-05-26 - older than 7 days',
      '2026-05-25 - older than 7 days',
    ]);
  });

  it('keeps the one older than the window until a newer one covers it', () => {
    const dumps = [aDump('2026-06-03'), aDump('2026-05-20'), aDump('2026-05-01')];
    expect(tell(dumps)).toEqual([
      '2026-06-03 + last good, not older than 7 days',
      '2026-05-20 + the state of 7 days ago',
      '2026-05-01 - older than 7 days',
    ]);
    const later = new Date('2026-06-11T04:00:00Z');
    expect(tell([aDump('2026-06-10'), ...dumps], { at: later })).toEqual([
      '2026-06-10 + last good, not older than 7 days',
      '2026-06-03 + the state of 7 days ago',
      '2026-05-20 - older than 7 days',
      '2026-05-01 - older than 7 days',
    ]);
  });

  it('removes nothing while the last good one is older than that (O24)', () => {
    const dumps = [aDump('2026-05-26'), aDump('2026-05-25'), aDump('2026-04-01', { level: 'uploaded' })];
    expect(tell(dumps)).toEqual([
      '2026-05-26 + last good, the state of 7 days ago',
      '2026-05-25 + its last good dump is 9d 1h old',
      '2026-04-01 + its last good dump is 9d 1h old',
    ]);
  });

  it('removes nothing of a database whose last backup failed (O24, R53)', () => {
    const old = [aDump('2026-06-01'), aDump('2026-05-01'), aDump('2026-04-01')];
    const other = old.map((dump) => aDump(dump.at.toISOString(), { database: 'b' }));
    const told = decide([...old, ...other], { failing: ['app'] });
    expect(
      told.map(({ database, standstill, decisions }) => [
        database,
        standstill,
        decisions.filter(({ isKept }) => isKept).length,
      ]),
    ).toEqual([
      ['app', 'its last backup failed', 3],
      ['b', undefined, 2],
    ]);
  });

  it('takes a failure from the manifest of a later set as well (O24)', () => {
    const failed = new Date('2026-06-03T03:00:00Z');
    const inventory = anInventory([aDump('2026-06-01'), aDump('2026-05-01'), aDump('2026-04-01')]);
    const manifest = aManifest(failed, { failures: [{ database: 'app', error: 'refused' }] });
    const sets = [...inventory.sets, aSet([], { at: failed, manifest })];
    const [plan] = planRetention({ ...inventory, sets }, { policy: aWeek, now, failing: new Set() });
    expect(plan?.standstill).toBe('its last backup failed');
    expect(plan?.decisions.every(({ isKept }) => isKept)).toBe(true);
  });

  it('has nothing to do where there are fewer than are to be kept (O38)', () => {
    const policy = { retentionDays: 1, retention: { last: 5 } };
    expect(tell([aDump('2026-06-04'), aDump('2026-06-02')], { policy })).toEqual([
      '2026-06-04 + last good, not older than 1 day, last 5',
      '2026-06-02 + the state of 1 day ago, last 5',
    ]);
    expect(decide([])).toEqual([]);
  });

  it('keeps a minimum before age is looked at', () => {
    const policy = { retentionDays: 1, retention: { minimum: 3 } };
    expect(tell(days('2026-06-04', 5), { policy })).toEqual([
      '2026-06-04 + last good, minimum of 3, not older than 1 day',
      '2026-06-03 + minimum of 3, the state of 1 day ago',
      '2026-06-02 + minimum of 3',
      '2026-06-01 - older than 1 day',
      '2026-05-31 - older than 1 day',
    ]);
  });
});

describe('dumps that are not good', () => {
  const broken = { level: 'broken', fault: 'it is cut' } as const;

  it('take no place of the good ones (O1, O25, R53)', () => {
    const policy = { retentionDays: 1, retention: { last: 2 } };
    const dumps = [
      aDump('2026-06-04', { level: 'uploaded' }),
      aDump('2026-06-03', broken),
      aDump('2026-06-03T20:00:00Z'),
      aDump('2026-06-02'),
      aDump('2026-06-01'),
      aDump('2026-05-31', broken),
      aDump('2026-05-30', { level: 'uploaded' }),
    ];
    expect(tell(dumps, { policy })).toEqual([
      '2026-06-04 + not older than 1 day',
      '2026-06-03T20-00-00Z + last good, not older than 1 day, last 2',
      '2026-06-03 - broken (it is cut), older than 1 day, and 2026-06-03T20-00-00Z is good',
      '2026-06-02 + the state of 1 day ago, last 2',
      '2026-06-01 - older than 1 day, and in no tier',
      '2026-05-31 - broken (it is cut), older than 1 day, and 2026-06-03T20-00-00Z is good',
      '2026-05-30 - nothing says that it is whole, older than 1 day, and 2026-06-03T20-00-00Z is good',
    ]);
  });

  it('move no window (O26)', () => {
    const good = days('2026-06-03', 10);
    const plain = tell(good);
    expect(tell([aDump('2026-06-04', broken), ...good]).slice(1)).toEqual(plain);
    expect(tell([aDump('2026-06-04', { level: 'uploaded' }), ...good]).slice(1)).toEqual(plain);
  });

  it('stay while no newer one is good, and for a day after they were written (O32)', () => {
    const policy = { retentionDays: 1 };
    const lately = { level: 'uploaded', updatedAt: new Date('2026-06-04T01:00:00Z') } as const;
    const dumps = [
      aDump('2026-06-02', { level: 'uploaded' }),
      aDump('2026-06-01T12:00:00Z', { level: 'restored' }),
      aDump('2026-05-20', lately),
      aDump('2026-05-19', { level: 'uploaded' }),
    ];
    const told = tell(dumps, { policy: { retentionDays: 3 } });
    expect(told.map((line) => line.slice(0, 22))).toEqual([
      '2026-06-02 + not older',
      '2026-06-01T12-00-00Z +',
      '2026-05-20 + written l',
      '2026-05-19 - nothing s',
    ]);
    expect(tell([aDump('2026-06-02', { level: 'uploaded' }), aDump('2026-06-01')], { policy })[0]).toBe(
      '2026-06-02 + no newer one is good',
    );
    expect(tell([aDump('2026-05-02', { level: 'uploaded' })], { policy })).toEqual([
      '2026-05-02 + no newer one is good',
    ]);
  });

  it('are nothing to remove where they are not there', () => {
    const { updatedAt: _, ...missing } = aDump('2026-05-01', { level: 'broken', fault: 'it is not there' });
    expect(tell([aDump('2026-06-04'), missing])).toEqual(['2026-06-04 + last good, not older than 7 days']);
  });
});

describe('tiers', () => {
  const policy = { retentionDays: 1, retention: { daily: 3, weekly: 2, monthly: 3, yearly: 2 } };

  it('are filled each by itself, with the newest dump of each period (R53)', () => {
    const dumps = [
      ...['2026-06-04', '2026-06-03T22:00:00Z', '2026-06-03', '2026-06-02', '2026-06-01', '2026-05-31'],
      ...['2026-05-30', '2026-05-24', '2026-05-01', '2026-04-30', '2026-04-01', '2025-12-31', '2025-01-01'],
    ].map((at) => aDump(at));
    expect(tell(dumps, { policy })).toEqual([
      '2026-06-04 + last good, not older than 1 day, daily of 2026-06-04, weekly of 2026-W23, monthly of 2026-06, yearly of 2026',
      '2026-06-03T22-00-00Z + not older than 1 day, daily of 2026-06-03',
      '2026-06-03 + the state of 1 day ago',
      '2026-06-02 + daily of 2026-06-02',
      '2026-06-01 - older than 1 day, and in no tier',
      '2026-05-31 + weekly of 2026-W22, monthly of 2026-05',
      '2026-05-30 - older than 1 day, and in no tier',
      '2026-05-24 - older than 1 day, and in no tier',
      '2026-05-01 - older than 1 day, and in no tier',
      '2026-04-30 + monthly of 2026-04',
      '2026-04-01 - older than 1 day, and in no tier',
      '2025-12-31 + yearly of 2025',
      '2025-01-01 - older than 1 day, and in no tier',
    ]);
  });

  it('go past periods without a dump', () => {
    const weekly = { retentionDays: 1, retention: { weekly: 3 } };
    const dumps = ['2026-06-04', '2026-04-01', '2026-01-01', '2025-01-01'].map((at) => aDump(at));
    expect(tell(dumps, { policy: weekly }).map((line) => line.split(' ')[1])).toEqual(['+', '+', '+', '-']);
  });

  it.each([
    ['2027-01-01', '2026-W53'],
    ['2027-01-03', '2026-W53'],
    ['2027-01-04', '2027-W01'],
    ['2024-12-30', '2025-W01'],
    ['2024-12-29', '2024-W52'],
    ['2026-03-29', '2026-W13'],
    ['2026-03-30', '2026-W14'],
  ])('have ISO weeks: %s is in %s', (day, week) => {
    const at = new Date(`${day}T12:00:00Z`);
    const weekly = { retentionDays: 1, retention: { weekly: 1 } };
    expect(tell([aDump(day)], { policy: weekly, at })[0]).toContain(`weekly of ${week}`);
  });

  it('are of UTC, so that an hour that comes twice has two names in order (O36)', () => {
    const parsed = parseSchedule('30 * * * *');
    if ('fault' in parsed) throw new Error(parsed.fault);
    const fires: Date[] = [];
    let after = new Date('2026-10-24T23:00:00Z');
    while (fires.length < 4) {
      after = nextFire(parsed.schedule, after, 'Europe/Berlin') as Date;
      fires.push(after);
    }
    expect(fires.map(stampOf)).toEqual([
      '2026-10-24T23-30-00Z',
      '2026-10-25T00-30-00Z',
      '2026-10-25T01-30-00Z',
      '2026-10-25T02-30-00Z',
    ]);
    const given = {
      policy: { retentionDays: 1, retention: { daily: 2 } },
      at: new Date('2026-10-25T03:00:00Z'),
    };
    expect(
      tell(
        fires.map((fire) => aDump(fire.toISOString())),
        given,
      ),
    ).toEqual([
      '2026-10-25T02-30-00Z + last good, not older than 1 day, daily of 2026-10-25',
      '2026-10-25T01-30-00Z + not older than 1 day',
      '2026-10-25T00-30-00Z + not older than 1 day',
      '2026-10-24T23-30-00Z + not older than 1 day, daily of 2026-10-24',
    ]);
  });

  it('are counted without what lies in the future, which stays', () => {
    const ahead = '2026-06-04T04:03:00Z';
    const given = { policy: { retentionDays: 1, retention: { last: 1 } } };
    expect(
      tell([aDump(ahead), aDump('2026-06-04'), aDump('2026-06-01'), aDump('2026-05-01')], given),
    ).toEqual([
      '2026-06-04T04-03-00Z + in the future',
      '2026-06-04 + last good, not older than 1 day, last 1',
      '2026-06-01 + the state of 1 day ago',
      '2026-05-01 - older than 1 day, and in no tier',
    ]);
  });
});
