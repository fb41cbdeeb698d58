// A scheduled service in a node in memory: what is started, what is left out, and what is told.
import { describe, expect, it } from 'vitest';
import type { DesiredService } from '../../../src/lib/cluster/wire.ts';
import type { Replica } from '../../../src/lib/reconcile/facts.ts';
import { reportLook, troublesOf } from '../../../src/lib/reconcile/report-status.ts';
import { aService, aWebService } from '../../support/builders.ts';
import { World } from '../../support/world.ts';
import { setAnchor } from '../../support/world-runs.ts';

const key = 'blog/web';
const hourly = aService({ cron: '0 * * * *' });
/** The fire before it is that of 03:00. */
const now = '2026-06-04T03:20:00.000Z';

function scheduled(service: DesiredService = hourly, anchor = '2026-06-04T03:00:00.000Z'): World {
  const world = new World();
  world.now = new Date(now);
  world.desired = [service];
  setAnchor(world, service, anchor);
  return world;
}

function addRun(world: World, fire: string, overrides: Partial<Replica> = {}): Replica {
  return world.add(hourly, 0, { cronFire: Date.parse(fire), ...overrides });
}

const ended = { state: 'exited' as const, statusText: 'Exited (0) 5 minutes ago', exitCode: 0 };
const reporter = { nodeId: 'web-1', agentId: 'web-1', agentVersion: '1', reeveVersion: '1' };

function report(world: World, faults: ReadonlyMap<string, { error: string }> = new Map()) {
  const plan = world.plan();
  return reportLook(world.facts(), plan, troublesOf(plan, faults), reporter);
}

function firesOf(world: World): string[] {
  return [...world.containers.values()].map(({ cronFire }) => new Date(cronFire ?? 0).toISOString());
}

describe('a schedule', () => {
  it('that is new is armed, and makes up for nothing (L59)', () => {
    const world = new World();
    world.now = new Date(now);
    world.desired = [hourly];
    expect(world.steps()).toEqual(['armSchedule blog/web']);
    world.settle();
    expect(world.cron.fires).toEqual({ [key]: Date.parse(now) });
    expect([world.steps(), world.containers.size]).toEqual([[], 0]);
  });

  it('that is new while a run of it is in progress begins with that run (L59)', () => {
    const world = new World();
    world.now = new Date(now);
    world.desired = [hourly];
    addRun(world, '2026-06-04T03:00:00.000Z');
    world.settle();
    expect(world.cron.fires).toEqual({ [key]: Date.parse('2026-06-04T03:00:00.000Z') });
    expect(world.log).toEqual(['armSchedule blog/web']);
  });

  it('that has changed begins anew: it never fires for the time before (L59)', () => {
    const world = scheduled(hourly, '2026-06-04T03:00:00.000Z');
    world.desired = [{ ...hourly, cron: '10 * * * *' }];
    expect(world.plan().services[0]?.headline?.reason).toBe('the schedule has changed');
    world.settle();
    expect([world.log, world.containers.size]).toEqual([['armSchedule blog/web'], 0]);
    world.desired = [{ ...hourly, cron: '10 * * * *', timeZone: 'Europe/Berlin' }];
    world.log = [];
    world.settle();
    expect(world.log).toEqual(['armSchedule blog/web']);
  });

  it('that was imported goes on from its last fire (L58)', () => {
    const world = scheduled();
    world.cron = { fires: { [key]: Date.parse('2026-06-04T02:00:00.000Z') } };
    world.settle();
    expect(firesOf(world)).toEqual(['2026-06-04T03:00:00.000Z']);
  });

  it('waits until the next fire is due, and then starts one run (L51, L55)', () => {
    const world = scheduled();
    expect(world.steps()).toEqual([]);
    world.now = new Date('2026-06-04T03:59:59.999Z');
    expect(world.steps()).toEqual([]);
    world.now = new Date('2026-06-04T04:00:00.000Z');
    expect(world.steps()).toEqual(['startRun blog/web#0']);
    world.settle();
    expect(firesOf(world)).toEqual(['2026-06-04T04:00:00.000Z']);
    expect(world.steps()).toEqual([]);
  });

  it('in a zone fires by its clocks (R20)', () => {
    const world = scheduled({ ...hourly, cron: '30 5 * * *', timeZone: 'Europe/Berlin' });
    world.now = new Date('2026-06-04T03:30:00.000Z');
    expect(world.steps()).toEqual(['startRun blog/web#0']);
  });

  it('that was not kept for three weeks makes one run, of the latest fire (L63, R22)', () => {
    const world = scheduled(aService({ cron: '* * * * *' }), '2026-05-14T03:00:00.000Z');
    world.settle();
    expect(firesOf(world)).toEqual(['2026-06-04T03:20:00.000Z']);
    expect(world.log).toEqual(['startRun blog/web#0']);
  });

  it('takes the later of what its state and its last container say (L57, L58)', () => {
    const byLabel = scheduled(hourly, '2026-06-04T01:00:00.000Z');
    addRun(byLabel, '2026-06-04T03:00:00.000Z', ended);
    expect(byLabel.steps()).toEqual([]);
    const byState = scheduled(hourly, '2026-06-04T03:00:00.000Z');
    addRun(byState, '2026-06-04T01:00:00.000Z', ended);
    expect(byState.steps()).toEqual([]);
  });

  it('leaves out a fire that comes while a run is in progress, and does not make up for it (L62)', () => {
    const world = scheduled(hourly, '2026-06-04T02:00:00.000Z');
    const run = addRun(world, '2026-06-04T02:00:00.000Z');
    expect(world.steps()).toEqual(['skipFire blog/web']);
    world.settle();
    world.containers.set(run.name, { ...run, ...ended });
    expect(world.steps()).toEqual([]);
    expect(firesOf(world)).toEqual(['2026-06-04T02:00:00.000Z']);
  });

  it.each(['paused', 'restarting'] as const)('takes a run that is %s for one in progress (L62)', (state) => {
    const world = scheduled(hourly, '2026-06-04T02:00:00.000Z');
    addRun(world, '2026-06-04T02:00:00.000Z', { state });
    expect(world.steps()).toEqual(['skipFire blog/web']);
  });

  it('keeps the container of a run that has ended until the next, which removes it (L64)', () => {
    const world = scheduled();
    const run = addRun(world, '2026-06-04T03:00:00.000Z', ended);
    world.settle();
    expect(world.containers.get(run.name)).toMatchObject(ended);
    world.now = new Date('2026-06-04T04:00:30.000Z');
    const [turn] = world.plan().services;
    expect(turn?.steps).toMatchObject([{ action: 'startRun', args: { previous: [{ name: run.name }] } }]);
    world.settle();
    expect(firesOf(world)).toEqual(['2026-06-04T04:00:00.000Z']);
  });

  it('skips a fire after a crash between its record and its start (L60, L61)', () => {
    const world = scheduled(hourly, '2026-06-04T02:00:00.000Z');
    world.diesAfterRecord = true;
    world.advance();
    world.diesAfterRecord = false;
    world.crash();
    expect([world.steps(), world.containers.size]).toEqual([[], 0]);
  });

  it('never starts what was made and not started, and replaces it at the next fire (L61)', () => {
    const world = scheduled();
    addRun(world, '2026-06-04T03:00:00.000Z', { state: 'created', statusText: 'Created' });
    expect(world.steps()).toEqual([]);
    world.now = new Date('2026-06-04T04:00:00.000Z');
    world.settle();
    expect(firesOf(world)).toEqual(['2026-06-04T04:00:00.000Z']);
  });

  it('whose state lies in the future counts from now, once and with a warning (R23)', () => {
    const world = scheduled(hourly, '2026-06-06T03:00:00.000Z');
    addRun(world, '2026-06-06T03:00:00.000Z', ended);
    expect(world.plan().services[0]?.steps).toMatchObject([
      {
        action: 'armSchedule',
        reason: 'its last fire, 2026-06-06T03:00:00.000Z, lies in the future: it counts from now',
        args: { fireMs: Date.parse(now), isDoubtful: true },
      },
    ]);
    world.settle();
    expect(world.log).toEqual(['armSchedule blog/web']);
    world.now = new Date('2026-06-04T04:00:00.000Z');
    world.settle();
    expect(firesOf(world)).toEqual(['2026-06-04T04:00:00.000Z']);
  });

  it('runs what is desired at the next fire: a change alone starts nothing (L50)', () => {
    const world = scheduled();
    addRun(world, '2026-06-04T03:00:00.000Z', ended);
    world.desired = [{ ...hourly, image: 'b:2', env: { A: '1' }, restartAt: now }];
    expect(world.steps()).toEqual([]);
    world.now = new Date('2026-06-04T04:00:00.000Z');
    world.settle();
    expect([...world.containers.values()].map(({ image }) => image)).toEqual(['b:2']);
  });

  it('first takes away what its name ran before it was scheduled', () => {
    const world = scheduled(hourly, '2026-06-04T02:00:00.000Z');
    world.add(aWebService(), 0);
    expect(world.steps()).toEqual(['drainReplica blog/web#0']);
    world.settle();
    expect(firesOf(world)).toEqual(['2026-06-04T03:00:00.000Z']);
  });

  it('that is scheduled no more becomes a service that runs on, and its last fire is forgotten', () => {
    const world = scheduled();
    addRun(world, '2026-06-04T03:00:00.000Z', ended);
    world.desired = [aService()];
    world.settle();
    expect(world.running(key).map(({ cronFire }) => cronFire)).toEqual([undefined]);
    expect([world.containers.size, world.cron.fires]).toEqual([1, {}]);
  });

  it('that is no longer desired goes with its containers and its last fire; backups keep theirs (L73)', () => {
    const world = scheduled();
    addRun(world, '2026-06-04T03:00:00.000Z');
    world.cron = { ...world.cron, fires: { ...world.cron.fires, [`backup:${key}`]: 1 } };
    world.desired = [];
    world.settle();
    expect(world.log).toEqual([
      'stopReplica blog/web#0',
      'removeReplica blog/web#0',
      'forgetSchedule blog/web',
    ]);
    expect([world.containers.size, world.cron.fires]).toEqual([0, { [`backup:${key}`]: 1 }]);
  });

  it('forgets nothing without a desired state, nor of a service that is refused', () => {
    const world = scheduled();
    world.desired = [];
    world.rejected = [{ index: 0, key, reason: 'cron: no', ingress: undefined }];
    expect(world.steps()).toEqual([]);
    world.rejected = [{ index: 0, key: undefined, reason: 'project: missing', ingress: undefined }];
    expect(world.steps()).toEqual([]);
    world.known = false;
    expect(world.steps()).toEqual([]);
  });

  it('that is held fires only when asked for by name', () => {
    const world = scheduled(hourly, '2026-06-04T02:00:00.000Z');
    const until = new Date('2026-06-05T00:00:00.000Z').toISOString();
    world.holds = [{ target: key, until, reason: 'maintenance', by: 'root', since: now }];
    expect([world.steps(), world.plan().deferred]).toEqual([[], [{ key, reason: 'held: maintenance' }]]);
    expect(world.steps({ only: key })).toEqual(['startRun blog/web#0']);
  });
});

describe('what is told of a schedule (L66, L67, L68)', () => {
  const next = '2026-06-04T04:00:00.000Z';
  const fire = '2026-06-04T03:00:00.000Z';

  it.each([
    ['an idle one', undefined, `scheduled, next run ${next}`, [null, null]],
    ['one whose last run was good', ended, `last run ok, next run ${next}`, [fire, 0]],
    [
      'one whose last run failed',
      { state: 'exited', exitCode: 3 },
      `last run failed (exit 3), next run ${next}`,
      [fire, 3],
    ],
    ['one with a run in progress', {}, `run in progress, next run ${next}`, [fire, null]],
    [
      'one whose run was made and not started',
      { state: 'created' },
      `scheduled, next run ${next}`,
      [null, null],
    ],
  ] as const)('%s is running', (_, run, message, [lastRunAt, lastExitCode]) => {
    const world = scheduled();
    if (run !== undefined) addRun(world, fire, run);
    const { status, reeve } = report(world);
    expect(status.services).toMatchObject([
      { state: 'running', message, cron: { lastRunAt, lastExitCode, nextRunAt: next } },
    ]);
    expect([reeve.converged, reeve.failing]).toEqual([true, []]);
  });

  it('one that never fires has no next run', () => {
    const { status } = report(scheduled({ ...hourly, cron: '0 0 30 2 *' }));
    expect(status.services).toMatchObject([{ message: 'scheduled', cron: { nextRunAt: null } }]);
  });

  it('a run that cannot be started is the error of its service, and no deploy waits for it (L69)', () => {
    const world = scheduled(hourly, '2026-06-04T02:00:00.000Z');
    const error = 'cannot pull image';
    const { status, reeve } = report(world, new Map([[key, { error }]]));
    expect(status.services).toMatchObject([{ state: 'error', message: error }]);
    expect([reeve.converged, reeve.failing]).toEqual([true, []]);
  });

  it('what has to go before it runs is waited for', () => {
    const world = scheduled();
    world.add(aWebService(), 0);
    expect(report(world).reeve.converged).toBe(false);
  });
});
