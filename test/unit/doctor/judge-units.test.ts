import { describe, expect, it } from 'vitest';
import { judgeTimers, judgeUnits, type UnitState } from '../../../src/lib/doctor/judge-units.ts';

const unit = (name: string, overrides: Partial<UnitState> = {}): UnitState => ({
  unit: name,
  load: 'loaded',
  active: 'inactive',
  sub: 'dead',
  result: 'success',
  nextRealtime: '',
  nextMonotonic: '',
  wantedBy: [],
  needsReload: false,
  isUnneeded: false,
  ...overrides,
});
const target = unit('reeve.target', { active: 'active', sub: 'active' });
const service = unit('reeve-reconcile.service');
const timer = (overrides: Partial<UnitState> = {}): UnitState =>
  unit('reeve-reconcile.timer', { active: 'active', sub: 'waiting', nextMonotonic: '1h 2s', ...overrides });
const states = (units: readonly UnitState[], pendingChanges: readonly string[] = []) => ({
  units,
  pendingChanges,
});

describe('units', () => {
  it('in order are one line', () => {
    expect(judgeUnits(states([target, service, timer()]))).toEqual([
      { level: 'ok', what: '3 units in order' },
    ]);
  });

  it('that are not installed are told of', () => {
    const none = [
      {
        level: 'warning',
        what: 'the units are not installed: nothing runs by itself',
        fix: 'scripts/install',
      },
    ];
    expect(judgeUnits(states([]))).toEqual(none);
    expect(judgeUnits(states([unit('reeve.target', { load: 'not-found' })]))).toEqual(none);
  });

  it('that are switched off as a whole are told of', () => {
    expect(judgeUnits(states([unit('reeve.target'), service]))).toEqual([
      {
        level: 'warning',
        what: 'it is stopped: nothing runs by itself',
        where: 'reeve.target',
        fix: 'systemctl enable --now reeve.target',
      },
    ]);
  });

  it('that are stopped although a target that runs wants them are a failure', () => {
    const app = unit('reeve-app.target', { active: 'active' });
    const stopped = timer({ active: 'inactive', sub: 'dead', wantedBy: ['reeve-app.target'] });
    expect(judgeUnits(states([target, app, stopped]))).toEqual([
      {
        level: 'failure',
        what: 'it is stopped, although reeve-app.target wants it',
        where: 'reeve-reconcile.timer',
        fix: 'systemctl start reeve-reconcile.timer',
      },
    ]);
    const ofAnotherRole = judgeUnits(states([target, { ...app, active: 'inactive' }, stopped]));
    expect(ofAnotherRole[0]?.level).toBe('ok');
  });

  it('that need a program which is not installed are not stopped', () => {
    const edge = unit('reeve-edge.target', { active: 'active', sub: 'active' });
    const socket = unit('reeve-balancer.socket', { wantedBy: ['reeve-edge.target'] });
    expect(judgeUnits(states([target, edge, socket]))[0]).toMatchObject({
      level: 'failure',
      fix: 'systemctl start reeve-balancer.socket',
    });
    expect(judgeUnits(states([target, edge, { ...socket, isUnneeded: true }]))).toEqual([
      { level: 'ok', what: '3 units in order' },
    ]);
  });

  it.each(['start-limit-hit', 'unit-start-limit-hit', 'trigger-limit-hit'])(
    'that hit a limit and will never run again are a failure: %s (R60, O52)',
    (result) => {
      expect(
        judgeUnits(states([target, unit('reeve-reconcile.path', { active: 'failed', result })])),
      ).toEqual([
        {
          level: 'failure',
          what: `it was started too often and will not start again (${result})`,
          where: 'reeve-reconcile.path',
          fix: 'systemctl reset-failed reeve-reconcile.path, then systemctl start reeve-reconcile.path',
        },
      ]);
    },
  );

  it('that have failed are a failure', () => {
    expect(judgeUnits(states([target, { ...service, active: 'failed', result: 'timeout' }]))).toEqual([
      {
        level: 'failure',
        what: 'it has failed (timeout)',
        where: 'reeve-reconcile.service',
        fix: 'journalctl -u reeve-reconcile.service -n 20 tells why',
      },
    ]);
  });

  it('whose files or configuration have changed meanwhile are told of', () => {
    expect(
      judgeUnits(states([target, { ...service, needsReload: true }], ['reeve-reconcile.timer'])),
    ).toEqual([
      {
        level: 'warning',
        what: 'changed on disk since systemd read them',
        where: 'reeve-reconcile.service',
        fix: 'systemctl daemon-reload',
      },
      {
        level: 'warning',
        what: 'the configuration has changed since the units were rendered',
        where: 'reeve-reconcile.timer',
        fix: '`reeve units render --write`',
      },
    ]);
  });
});

describe('timers', () => {
  it.each([
    ['an instant', { nextRealtime: 'Thu 2026-06-04 03:00:00 UTC', nextMonotonic: 'infinity' }],
    ['a span', { nextMonotonic: '2min 3s' }],
    ['its service runs', { sub: 'running', nextMonotonic: 'infinity' }],
  ])('with a next run are one line: %s', (_, next) => {
    expect(judgeTimers(states([target, timer(next)]))).toEqual([
      { level: 'ok', what: '1 timer, each with a next run' },
    ]);
  });

  it.each([
    ['', 'infinity'],
    ['n/a', ''],
    ['0', '18446744073709551615'],
  ])('that look active and have no next run are a failure: %j, %j (O39)', (nextRealtime, nextMonotonic) => {
    expect(judgeTimers(states([target, timer({ sub: 'elapsed', nextRealtime, nextMonotonic })]))).toEqual([
      {
        level: 'failure',
        what: 'it has no next run',
        where: 'reeve-reconcile.timer',
        fix: 'systemctl restart reeve-reconcile.timer',
      },
    ]);
  });

  it('are nothing to judge where there are none', () => {
    expect(judgeTimers(states([target]))).toEqual([]);
  });
});
