import { describe, expect, it } from 'vitest';
import { concernOf, describeFailure, type FailureFacts, planFailure } from '../../../src/lib/failure/plan.ts';
import type { FailureRecord } from '../../../src/lib/failure/record.ts';

const at = (minutes: number): Date => new Date(Date.UTC(2026, 5, 4, 3, minutes));
const iso = (minutes: number): string => at(minutes).toISOString();

const facts = (overrides: Partial<FailureFacts> = {}): FailureFacts => ({
  now: at(0),
  unit: 'reeve-backup.service',
  result: 'exit-code',
  status: '1',
  invocationId: 'abc',
  lastLines: ['no space'],
  previous: undefined,
  lastGoodAt: null,
  ...overrides,
});

/** Failed at 0 for the first time, told of at once. */
const told: FailureRecord = {
  unit: 'reeve-backup.service',
  firstAt: iso(0),
  lastAt: iso(0),
  count: 1,
  result: 'exit-code',
  status: '1',
  invocationId: 'abc',
  lastLines: ['no space'],
  notified: true,
  hook: { triedAt: iso(0), error: null },
};

describe('a failure', () => {
  it('opens an episode and is told of', () => {
    expect(planFailure(facts())).toEqual({
      record: { ...told, notified: false, hook: null },
      notify: true,
    });
  });

  it('in the same episode is counted and not told of again, however long it lasts', () => {
    const plan = planFailure(facts({ now: at(999), previous: told, result: 'timeout', status: 'KILL' }));
    expect(plan).toEqual({
      record: { ...told, lastAt: iso(999), count: 2, result: 'timeout', status: 'KILL' },
      notify: false,
    });
  });

  it('after a good run opens the next episode', () => {
    const plan = planFailure(facts({ now: at(90), previous: told, lastGoodAt: iso(30) }));
    expect(plan.record).toMatchObject({ firstAt: iso(90), count: 1, notified: false });
    expect(plan.notify).toBe(true);
  });

  it('of a unit that comes and goes is told of once an hour at most, and then it is', () => {
    const second = planFailure(facts({ now: at(10), previous: told, lastGoodAt: iso(5) }));
    expect([second.record.count, second.notify]).toEqual([1, false]);
    const third = planFailure(facts({ now: at(61), previous: second.record, lastGoodAt: iso(5) }));
    expect([third.record.count, third.notify]).toEqual([2, true]);
  });

  it('whose hook failed is told of again after five minutes', () => {
    const untold = { ...told, notified: false, hook: { triedAt: iso(0), error: 'no network' } };
    expect(planFailure(facts({ now: at(4), previous: untold })).notify).toBe(false);
    expect(planFailure(facts({ now: at(5), previous: untold })).notify).toBe(true);
  });

  it('of a unit without run records belongs to the episode of the hour before', () => {
    const same = planFailure(facts({ now: at(59), previous: told, lastGoodAt: undefined }));
    expect([same.record.count, same.notify]).toEqual([2, false]);
    const next = planFailure(facts({ now: at(60), previous: told, lastGoodAt: undefined }));
    expect([next.record.count, next.notify]).toEqual([1, true]);
  });

  it('before the earlier one, as the clock was set back, opens an episode and is told of', () => {
    const plan = planFailure(facts({ now: at(-5), previous: told }));
    expect([plan.record.count, plan.notify]).toEqual([1, true]);
  });
});

describe('the concern of a unit', () => {
  it.each([
    ['reeve-reconcile.service', 'reconcile'],
    ['reeve-rsync-pull.timer', 'rsync-pull'],
    ['reeve-job@7.service', 'job@7'],
    ['docker.service', undefined],
  ])('is in its name: %s', (unit, concern) => {
    expect(concernOf(unit)).toBe(concern);
  });
});

describe('the message', () => {
  it('is one sentence with what, where, how and the last line', () => {
    expect(describeFailure(told, 'web-1')).toBe(
      'reeve-backup.service on web-1 failed (exit-code, status 1): no space',
    );
    expect(describeFailure({ ...told, count: 3, status: null, lastLines: [] }, 'web-1')).toBe(
      'reeve-backup.service on web-1 failed (exit-code), 3 times since 2026-06-04T03:00:00.000Z',
    );
  });

  /** As the journal of a booted machine has it, where a run follows the one that failed. */
  const journal = [
    'Starting reeve-backup.service - Back up what is due...',
    'nothing to do',
    'reeve-backup.service: Deactivated successfully.',
    'Finished reeve-backup.service - Back up what is due.',
    'Starting reeve-backup.service - Back up what is due...',
    'reeve: cannot read "a"',
    'reeve-backup.service: Main process exited, code=exited, status=69/UNAVAILABLE',
    "reeve-backup.service: Failed with result 'exit-code'.",
    'Failed to start reeve-backup.service - Back up what is due.',
    'reeve-backup.service: Triggering OnFailure= dependencies.',
    'Starting reeve-backup.service - Back up what is due...',
    'nothing to do',
  ];

  it.each([
    ['with the program’s last line and not systemd’s', journal, 'reeve: cannot read "a"'],
    ['with systemd’s where the program had none', journal.toSpliced(5, 1), `${journal[7]}`],
    ['as far as the journal has it yet', journal.slice(0, 6), 'reeve: cannot read "a"'],
  ])('ends %s', (_, lastLines, last) => {
    expect(describeFailure({ ...told, lastLines }, 'web-1')).toBe(
      `reeve-backup.service on web-1 failed (exit-code, status 1): ${last}`,
    );
  });
});
