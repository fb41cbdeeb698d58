import { describe, expect, it } from 'vitest';
import { isStalledTimer, type UnitState } from '../../../src/lib/systemd/list.ts';
import { parseTimerRuns, parseUnixTimestamp } from '../../../src/lib/systemd/parse.ts';

describe('what systemctl lists', () => {
  it('gives a next run as an instant, and none where there is none in any version (O39)', () => {
    const timer = {
      unit: 'reeve-reconcile.timer',
      activates: 'reeve-reconcile.service',
      left: 1,
      passed: null,
    };
    const nextOf = (next: unknown): Date | undefined => parseTimerRuns([{ ...timer, next }])[0]?.nextAt;
    expect(nextOf(1_795_982_809_929_795)).toEqual(new Date(1_795_982_809_929));
    // 252, an older one, and USEC_INFINITY as JSON has it.
    for (const none of [null, undefined, 0, 2 ** 64]) expect(nextOf(none)).toBeUndefined();
  });

  it('is refused where it has another shape', () => {
    expect(() => parseTimerRuns({ timers: [] })).toThrow(
      'cannot read the list of timers that systemctl gives',
    );
  });

  it('has instants in seconds, and an empty one for never', () => {
    expect(parseUnixTimestamp('@1795982809')).toEqual(new Date(1_795_982_809_000));
    for (const none of ['', '@0', 'n/a', undefined]) expect(parseUnixTimestamp(none)).toBeUndefined();
  });

  it('shows a timer that will never fire again, but not one whose service is running (O39)', () => {
    const timer: UnitState = {
      unit: 'reeve-reconcile.timer',
      enabled: 'static',
      active: 'active',
      sub: 'waiting',
      running: false,
    };
    expect(isStalledTimer(timer)).toBe(true);
    expect(isStalledTimer({ ...timer, nextAt: '2026-06-04T03:00:00.000Z' })).toBe(false);
    expect(isStalledTimer({ ...timer, running: true })).toBe(false);
    expect(isStalledTimer({ ...timer, active: 'inactive' })).toBe(false);
    expect(isStalledTimer({ ...timer, unit: 'reeve-reconcile.path' })).toBe(false);
  });
});
