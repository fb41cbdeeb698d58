import { describe, expect, it } from 'vitest';
import { type LastRun, type LivenessFacts, planLiveness } from '../../../src/lib/heartbeat/plan.ts';

const at = (seconds: number): Date => new Date(Date.UTC(2026, 5, 4, 3, 0, seconds));
const iso = (seconds: number): string => at(seconds).toISOString();

/** Ended at 0 s, ticks of 60 s. */
const rested: LastRun = { runId: 'run-1', startedAt: iso(-5), endedAt: iso(0), lastEndedAt: iso(0) };
/** Began at 60 s; at 100 s it told that it pulls, and that it would tell more by 120 s. */
const busy: LastRun = {
  runId: 'run-2',
  startedAt: iso(60),
  endedAt: null,
  lastEndedAt: iso(0),
  step: { name: 'pull', startedAt: iso(100), deadlineAt: iso(120) },
};

const facts = (overrides: Partial<LivenessFacts>): LivenessFacts => ({
  now: at(30),
  concern: 'reconcile',
  tickMs: 60_000,
  record: rested,
  lockHeld: false,
  ...overrides,
});
const dead = (why: string) => ({ alive: false, why });

describe('a node whose reconcile rests', () => {
  it.each([
    ['just ended', 0, true],
    ['three ticks ago', 180, true],
    ['the clock was set back a little', -180, true],
  ])('is alive within three ticks of its last end: %s', (_, seconds, alive) => {
    expect(planLiveness(facts({ now: at(seconds) }))).toEqual({ alive });
  });

  it('is not alive after three ticks', () => {
    expect(planLiveness(facts({ now: at(181) }))).toEqual(
      dead('reconcile last ended 3m 1s ago, and 3m are allowed'),
    );
  });

  it('is not alive by an end that lies in the future', () => {
    expect(planLiveness(facts({ now: at(-181) }))).toEqual(
      dead('reconcile last ended 3m 1s ahead of this clock, and 3m are allowed'),
    );
  });

  it('goes by its last end, too, when a killed run left its record open', () => {
    expect(planLiveness(facts({ now: at(170), record: busy }))).toEqual({ alive: true });
    expect(planLiveness(facts({ now: at(190), record: busy })).alive).toBe(false);
  });
});

describe('a node whose reconcile runs', () => {
  const running = (now: Date, record = busy) =>
    planLiveness(facts({ now, record: { ...record }, lockHeld: true }));

  it('is alive until the deadline of the step it told of, however long ago the last end is', () => {
    expect(running(at(119), { ...busy, lastEndedAt: iso(-9999) })).toEqual({ alive: true });
    expect(running(at(119), { ...busy, lastEndedAt: null })).toEqual({ alive: true });
  });

  it('is not alive once the deadline has passed, although the last end is recent (R33, O40)', () => {
    expect(running(at(125))).toEqual(
      dead('run run-2 of reconcile, 1m 5s old, is stuck in "pull", heard of last 25s ago'),
    );
  });

  it('is not alive by a step that lies in the future', () => {
    expect(running(at(50))).toEqual(
      dead('run run-2 of reconcile, 0ms old, is stuck in "pull", begun ahead of this clock'),
    );
  });

  it('is not alive without a step', () => {
    const { step: _, ...silent } = busy;
    expect(running(at(61), silent)).toEqual(dead('run run-2 of reconcile does not tell what it does'));
  });
});

describe('a node whose reconcile', () => {
  it('has never run is not alive', () => {
    expect(planLiveness(facts({ record: undefined }))).toEqual(dead('reconcile has never run'));
  });

  it('has never come to an end is not alive', () => {
    const killed = { ...busy, lastEndedAt: null };
    expect(planLiveness(facts({ record: killed }))).toEqual(dead('reconcile has never come to an end'));
  });
});
