import { describe, expect, it } from 'vitest';
import {
  judgeFailures,
  judgeHolds,
  judgeLocks,
  judgeRuns,
  type RunFacts,
} from '../../../src/lib/doctor/judge-runs.ts';
import type { FailureRecord } from '../../../src/lib/failure/record.ts';
import type { RunRecord } from '../../../src/lib/state/run-record.ts';

const now = new Date('2026-06-04T03:00:00Z');
const ago = (seconds: number): string => new Date(now.getTime() - seconds * 1000).toISOString();

const run = (overrides: Partial<RunRecord> = {}): RunRecord => ({
  concern: 'reconcile',
  runId: 'run-1',
  pid: 1,
  startedAt: ago(12),
  endedAt: ago(10),
  outcome: 'done',
  exitCode: 0,
  durationMs: 2000,
  lastEndedAt: ago(10),
  lastGoodAt: ago(10),
  ...overrides,
});
const facts = (overrides: Partial<RunFacts> = {}): RunFacts => ({
  runs: [run()],
  expected: [{ concern: 'reconcile', everyMs: 60_000 }],
  off: new Set(),
  hasTimers: true,
  timersForMs: 3_600_000,
  ...overrides,
});

describe('runs', () => {
  it('in order are one line', () => {
    expect(judgeRuns(facts(), now)).toEqual([{ level: 'ok', what: '1 concern in order' }]);
    expect(judgeRuns(facts({ runs: [], expected: [] }), now)).toEqual([
      { level: 'ok', what: 'nothing has run yet' },
    ]);
  });

  it('whose last good one is older than three ticks are a failure where timers should see to it', () => {
    const old = facts({ runs: [run({ lastGoodAt: ago(181) })] });
    expect(judgeRuns(old, now)).toEqual([
      {
        level: 'failure',
        what: 'the last good run of reconcile is 3m 1s old, and one is due every 1m',
        fix: 'journalctl -u reeve-reconcile -n 50 tells why',
      },
    ]);
    expect(judgeRuns({ ...old, hasTimers: false }, now)).toEqual([
      {
        level: 'warning',
        what: 'the last good run of reconcile is 3m 1s old, and one is due every 1m',
        fix: '`reeve reconcile`, or install the units',
      },
    ]);
  });

  it.each([
    ['none', [], 'reconcile has had no good run yet, and one is due every 1m'],
    [
      'no good one',
      [run({ lastGoodAt: null })],
      'reconcile has had no good run yet, and one is due every 1m',
    ],
    [
      'one in the future',
      [run({ lastGoodAt: ago(-181) })],
      'the last good run of reconcile is 3m 1s ahead of this clock, and one is due every 1m',
    ],
  ])('that should be there and are not: %s', (_, runs, what) => {
    expect(judgeRuns(facts({ runs }), now)[0]).toMatchObject({ level: 'failure', what });
  });

  it('of what has been switched off since are no news', () => {
    const failed = run({ concern: 'listen', outcome: 'failed', exitCode: 69, lastGoodAt: null });
    const runs = [run(), failed];
    expect(judgeRuns(facts({ runs }), now)).toMatchObject([{ level: 'failure' }]);
    expect(judgeRuns(facts({ runs, off: new Set(['listen']) }), now)).toEqual([
      { level: 'ok', what: '1 concern in order' },
    ]);
  });

  it('are not missed yet while the timers have just been started', () => {
    for (const runs of [[], [run({ lastGoodAt: ago(9999) })]]) {
      expect(judgeRuns(facts({ runs, timersForMs: 180_000 }), now)[0]?.level).toBe('ok');
      expect(judgeRuns(facts({ runs, timersForMs: 180_001 }), now)[0]?.level).toBe('failure');
    }
  });

  it('that are under way and tell what they do are not late', () => {
    const step = { name: 'pull', startedAt: ago(5), deadlineAt: ago(-15) };
    const busy = run({ endedAt: null, exitCode: null, step, lastGoodAt: ago(999) });
    expect(judgeRuns(facts({ runs: [busy] }), now)[0]?.level).toBe('ok');
    const stuck = run({ ...busy, step: { ...step, deadlineAt: ago(1) } });
    expect(judgeRuns(facts({ runs: [stuck] }), now)[0]?.level).toBe('failure');
  });

  it('that come again by themselves say why when they are run by hand', () => {
    const runs = [run({ exitCode: 69, error: 'no engine' })];
    const fixes = [true, false].map((hasTimers) => judgeRuns(facts({ runs, hasTimers }), now)[0]?.fix);
    expect(fixes).toEqual([
      'run `reeve reconcile`: it says why, and journalctl -g run-1 has the whole story, unless it was run by hand',
      'run `reeve reconcile`: it says why',
    ]);
  });

  it('of which another one has nothing left to say are told by what has', () => {
    const runs = [run({ concern: 'deploy-action', exitCode: 1 })];
    const expected = [{ concern: 'deploy-action', everyMs: 60_000, toldBy: 'reeve history' }];
    const judged = [true, false].map((hasTimers) => judgeRuns(facts({ runs, expected, hasTimers }), now)[0]);
    expect(judged.map((finding) => finding?.what)).toEqual(
      Array(2).fill('the last run of deploy-action ended with 1'),
    );
    expect(judged.map((finding) => finding?.fix)).toEqual([
      '`reeve history` says why, and journalctl -g run-1 has the whole story, unless it was run by hand',
      '`reeve history` says why',
    ]);
  });

  it('that ended badly are a failure with the reason; busy, pending and open ones are not', () => {
    const runs = [
      run({ exitCode: 75 }),
      run({ concern: 'plan', exitCode: 2 }),
      run({ concern: 'edge', exitCode: null, endedAt: null }),
      run({ concern: 'backup', exitCode: 1, error: 'no space' }),
    ];
    expect(judgeRuns(facts({ runs }), now)).toEqual([
      {
        level: 'failure',
        what: 'the last run of backup ended with 1: no space',
        fix: 'journalctl -g run-1 has the whole story, unless it was run by hand',
      },
    ]);
  });
});

describe('locks', () => {
  const holder = { pid: 7, command: 'reeve reconcile', since: ago(12) };

  it('tell who holds which and for how long', () => {
    expect(judgeLocks([{ name: 'reconcile', held: true, holder, text: true }], now)).toEqual([
      { level: 'ok', what: 'held by pid 7, `reeve reconcile`, for 12s', where: 'lock reconcile' },
    ]);
    expect(judgeLocks([{ name: 'status', held: true, text: false }], now)).toEqual([
      { level: 'ok', what: 'held by another process', where: 'lock status' },
    ]);
    const shell = { pid: 8, command: 'sh' };
    expect(judgeLocks([{ name: 'status', held: true, holder: shell, text: false }], now)[0]?.what).toBe(
      'held by pid 8, `sh`',
    );
  });

  it('held for longer than any run are told of', () => {
    const old = { ...holder, since: ago(1801) };
    expect(judgeLocks([{ name: 'reconcile', held: true, holder: old, text: true }], now)).toEqual([
      {
        level: 'warning',
        what: 'held by pid 7, `reeve reconcile`, for 30m 1s',
        where: 'lock reconcile',
        fix: 'if it hangs, kill 7: the lock goes with it',
      },
    ]);
  });

  it.each(['reeve job run', 'reeve backup', 'reeve backup verify'])(
    'held by `%s` for hours are in order',
    (command) => {
      const old = { ...holder, command, since: ago(7200) };
      expect(judgeLocks([{ name: 'job@a', held: true, holder: old, text: true }], now)).toEqual([
        { level: 'ok', what: `held by pid 7, \`${command}\`, for 2h`, where: 'lock job@a' },
      ]);
    },
  );

  it('that are free are one line, what killed runs left in them included', () => {
    expect(judgeLocks([{ name: 'status', held: false, text: false }], now)).toEqual([
      { level: 'ok', what: 'none is held' },
    ]);
    expect(judgeLocks([{ name: 'reconcile', held: false, text: true }], now)).toEqual([
      { level: 'ok', what: 'free, although a run that was killed is named in: reconcile' },
    ]);
  });
});

describe('failures', () => {
  const record: FailureRecord = {
    unit: 'reeve-backup.service',
    firstAt: ago(7200),
    lastAt: ago(3600),
    count: 2,
    result: 'exit-code',
    status: '1',
    invocationId: null,
    lastLines: ['no space', 'reeve-backup.service: Triggering OnFailure= dependencies.'],
    notified: true,
    hook: null,
  };

  it('since the last good run are told, with what the program said last', () => {
    expect(judgeFailures([{ record, lastGoodAt: ago(3601) }], now)).toEqual([
      {
        level: 'failure',
        what: `failed 2 times, last at ${ago(3600)} (exit-code, status 1): no space`,
        where: 'reeve-backup.service',
        fix: 'journalctl -u reeve-backup.service -n 50',
      },
    ]);
    const once = { ...record, count: 1, status: null, lastLines: [] };
    expect(judgeFailures([{ record: once, lastGoodAt: null }], now)[0]?.what).toBe(
      `failed once, last at ${ago(3600)} (exit-code)`,
    );
  });

  it('that a good run has followed, or that are a day old where nobody counts, are over', () => {
    const fine = [{ level: 'ok', what: 'none since the last good run' }];
    expect(judgeFailures([{ record, lastGoodAt: ago(3599) }], now)).toEqual(fine);
    const old = { ...record, lastAt: ago(86_401) };
    expect(judgeFailures([{ record: old, lastGoodAt: undefined }], now)).toEqual(fine);
    expect(judgeFailures([{ record, lastGoodAt: undefined }], now)[0]?.level).toBe('failure');
  });

  it('that nobody could be told of say so', () => {
    const untold = { ...record, hook: { triedAt: ago(1), error: 'no such program' } };
    expect(judgeFailures([{ record: untold, lastGoodAt: null }], now)[1]).toEqual({
      level: 'warning',
      what: 'nobody could be told: no such program',
      where: 'reeve-backup.service',
      fix: 'correct hooks.failure',
    });
    const told = { ...record, hook: { triedAt: ago(1), error: null } };
    expect(judgeFailures([{ record: told, lastGoodAt: null }], now)).toHaveLength(1);
  });
});

describe('holds', () => {
  it('are told of one by one', () => {
    expect(judgeHolds([])).toEqual([{ level: 'ok', what: 'none' }]);
    const hold = { target: 'blog/web', until: ago(-60), by: 'root', reason: 'debugging', since: ago(0) };
    expect(judgeHolds([hold])).toEqual([
      {
        level: 'warning',
        what: `held until ${ago(-60)} by root: debugging`,
        where: 'blog/web',
        fix: '`reeve hold --end`',
      },
    ]);
  });
});
