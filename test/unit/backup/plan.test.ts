import { describe, expect, it } from 'vitest';
import type { FoundDatabase } from '../../../src/lib/backup/engine.ts';
import { type BackupFacts, chooseDatabases, planBackups } from '../../../src/lib/backup/plan.ts';
import { type Attempt, forgetOthers, recordAttempt } from '../../../src/lib/backup/record.ts';
import { emptyBackups } from '../../../src/lib/backup/state.ts';
import { aService } from '../../support/builders.ts';

const now = new Date('2026-06-04T03:00:20.500Z');
const fire = new Date('2026-06-04T03:00:00Z');
const anchor = 'backup:shop/db';
const db = aService({
  ...{ project: 'shop', service: 'db' },
  backup: { schedule: '0 3 * * *', retentionDays: 7, bucket: 'file:///b', prefix: 'p/' },
});

function facts(overrides: Partial<BackupFacts> = {}): BackupFacts {
  return { now, services: [db], anchors: {}, imported: {}, holds: [], ...overrides };
}
const plan = (overrides: Partial<BackupFacts>) => planBackups(facts(overrides), { isNow: false });

describe('the plan of backups', () => {
  it('seeds at first sight, and clamps an anchor of a time to come (L74)', () => {
    expect(plan({})).toMatchObject({ due: [], anchored: [{ key: 'shop/db' }] });
    const ahead = plan({ anchors: { [anchor]: now.getTime() + 86_400_000 } });
    expect(ahead).toMatchObject({
      due: [],
      anchored: [{ key: 'shop/db', why: expect.stringContaining('future') }],
    });
  });

  it('has the fire that its own anchor has not seen, whatever a cron service of the name did (L72, L73)', () => {
    const due = [{ key: 'shop/db', service: db, fire, isScheduled: true }];
    expect(plan({ anchors: { [anchor]: fire.getTime() - 1 } }).due).toEqual(due);
    expect(plan({ imported: { [anchor]: fire.getTime() - 86_400_000 * 3 } }).due).toEqual(due);
    expect(plan({ imported: { 'shop/db': fire.getTime() - 1 } }).due).toEqual([]);
    expect(plan({ anchors: { [anchor]: fire.getTime() } })).toMatchObject({
      due: [],
      waiting: [{ key: 'shop/db', next: new Date('2026-06-05T03:00:00Z') }],
    });
  });

  it('is of whole seconds for a person, and only of what was asked for', () => {
    const other = { ...db, service: 'other' };
    const asked = planBackups(facts({ services: [db, other] }), { isNow: true, only: 'shop/other' });
    expect(asked.due.map(({ key, fire: at, isScheduled }) => [key, at.toISOString(), isScheduled])).toEqual([
      ['shop/other', '2026-06-04T03:00:20.000Z', false],
    ]);
  });
});

describe('the databases of a backup', () => {
  const found = (
    name: string | undefined,
    sizeBytes: number,
    more: Partial<FoundDatabase> = {},
  ): FoundDatabase => ({
    ...{ name, shown: name ?? '0xff', sizeBytes, isOwn: name === 'postgres' },
    ...more,
  });
  const all = [
    found('large', 900),
    found('postgres', 1),
    found('small', 10),
    found('template1', 5, { skip: 'it is a template' }),
  ];

  it('are all but what has a reason, small ones first (L77, O13)', () => {
    expect(chooseDatabases(all, [])).toEqual({
      dumped: [
        { name: 'small', sizeBytes: 10 },
        { name: 'large', sizeBytes: 900 },
      ],
      skipped: [
        { database: 'postgres', reason: expect.stringContaining("server's own") },
        { database: 'template1', reason: 'it is a template' },
      ],
      failures: [],
    });
  });

  it('are those of the list, and what of it cannot be had has failed (L77, L78)', () => {
    const choice = chooseDatabases(
      [...all, found(undefined, 1)],
      ['postgres', 'gone', 'template1', 'postgres'],
    );
    expect(choice.dumped).toEqual([{ name: 'postgres', sizeBytes: 1 }]);
    expect(choice.failures).toEqual([
      { database: 'gone', error: 'there is no such database' },
      { database: 'template1', error: 'it is a template' },
    ]);
    expect(chooseDatabases([found(undefined, 1)], []).failures).toMatchObject([{ database: '0xff' }]);
  });
});

describe('the record of an attempt', () => {
  const dumped = {
    kind: 'dumped',
    database: 'constructor',
    key: 'k',
    sizeBytes: 5,
    rawBytes: 9,
    sha256: '',
    durationMs: 1,
    tables: [],
  } as const;
  const attempt: Attempt = { key: 'shop/db', fire, isScheduled: true, databases: [dumped], isListed: true };

  it('moves the anchor, also where a database failed, and keeps what was good (L92, L93, L94)', () => {
    const good = recordAttempt(emptyBackups, attempt);
    const later = new Date('2026-06-05T03:00:00Z');
    const failed = { kind: 'failed', database: 'constructor', error: 'gone' } as const;
    const bad = recordAttempt(good, { ...attempt, fire: later, databases: [failed] });
    expect(bad.anchors).toEqual({ [anchor]: later.getTime() });
    expect(bad.services['shop/db']).toEqual({
      lastRunAt: later.toISOString(),
      lastSuccessAt: fire.toISOString(),
      lastError: 'database "constructor": gone',
      databases: {
        constructor: {
          lastSuccessAt: fire.toISOString(),
          sizeBytes: 5,
          level: 'readable',
          restoredAt: null,
          lastError: 'gone',
        },
      },
    });
  });

  it('of a person leaves the anchor, and one that was not listed forgets no database', () => {
    const good = recordAttempt(emptyBackups, { ...attempt, isScheduled: false });
    expect(good.anchors).toEqual({});
    const unlisted = recordAttempt(good, {
      ...attempt,
      databases: [],
      isListed: false,
      error: 'no password',
    });
    expect(Object.keys(unlisted.services['shop/db']?.databases ?? {})).toEqual(['constructor']);
    expect(unlisted.services['shop/db']?.lastError).toBe('no password');
  });

  it('goes with its service', () => {
    const good = recordAttempt(emptyBackups, attempt);
    expect(forgetOthers(good, new Set(['shop/db']))).toBe(good);
    expect(forgetOthers(good, new Set())).toEqual(emptyBackups);
  });
});
