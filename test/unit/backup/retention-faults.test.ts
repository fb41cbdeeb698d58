import { describe, expect, it } from 'vitest';
import { findClockFault, findPolicyFault } from '../../../src/lib/backup/retention/policy.ts';
import { aDump, anInventory } from '../../support/inventories.ts';

const now = new Date('2026-06-04T04:00:00Z');

describe('a policy', () => {
  it.each([
    [{ retentionDays: 7, retention: { daily: 7, minimum: 1 } }, undefined],
    [{ retentionDays: 0 }, 'retentionDays must be a whole number of at least 1'],
    [{ retentionDays: 7, retention: { daily: -1 } }, 'daily must be a whole number of at least 1'],
    [{ retentionDays: 7, retention: { hourly: 7 } }, 'there is no retention "hourly"'],
    [{ retentionDays: 7, retention: {} }, 'retention is empty'],
  ])('of %j (O30)', (policy, fault) => {
    expect(findPolicyFault(policy)).toBe(fault);
  });
});

describe('a clock', () => {
  const later = (minutes: number): Date => new Date(now.getTime() + minutes * 60_000);

  it.each([
    ['that agrees', [aDump('2026-06-04')], undefined],
    ['a little behind the store’s', [aDump('2026-06-04', { updatedAt: later(4) })], undefined],
    [
      'behind the store’s',
      [aDump('2026-06-04', { updatedAt: later(60) })],
      'the store was written 1h ahead of this clock: one of the two is wrong',
    ],
    [
      'behind the last good dump',
      [aDump('2026-06-05', { updatedAt: now })],
      'the newest good dump is of 2026-06-05T03-00-00Z, which is yet to come',
    ],
    [
      'behind a dump that is not good',
      [aDump('2026-06-05', { updatedAt: now, level: 'uploaded' })],
      undefined,
    ],
    [
      'that was ahead when the last good dump was made',
      [aDump('2026-06-04', { updatedAt: new Date('2026-06-03T03:00:00Z') })],
      'the newest good dump is of 2026-06-04T03-00-00Z, and the store was given it before, at 2026-06-03T03-00-00Z: a clock was wrong',
    ],
  ])('%s', (_, dumps, fault) => {
    expect(findClockFault(anInventory(dumps), now)).toBe(fault);
  });
});
