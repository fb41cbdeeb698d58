// A one-off service in a node in memory.
import { describe, expect, it } from 'vitest';
import type { Replica } from '../../../src/lib/reconcile/facts.ts';
import { nextFailure, releaseOf } from '../../../src/lib/reconcile/release.ts';
import { reportLook, troublesOf } from '../../../src/lib/reconcile/report-status.ts';
import { aService, aWebService } from '../../support/builders.ts';
import { World } from '../../support/world.ts';

const requestedAt = '2026-06-04T02:59:00.000Z';
const job = aService({ jobRun: { id: 'r1', requestedAt } });
const key = 'blog/web';

function oneOff(run?: Partial<Replica>): World {
  const world = new World();
  world.desired = [job];
  if (run !== undefined) world.add(job, 0, run);
  return world;
}

function statusOf(world: World) {
  const plan = world.plan();
  const reporter = { nodeId: 'web-1', agentId: 'web-1', agentVersion: '1', reeveVersion: '1' };
  const facts = { ...world.facts(), finishedAt: new Map([['c1', '2026-06-04T03:01:00.000Z']]) };
  return reportLook(facts, plan, troublesOf(plan, new Map()), reporter).status.services[0];
}

describe('a one-off run', () => {
  it('is started once, and never again as long as its container is there', () => {
    const world = oneOff();
    world.settle();
    expect(world.log).toEqual(['startJob blog/web#0']);
    const [run] = [...world.containers.values()] as [Replica];
    expect([run.jobRun, run.index]).toEqual(['r1', 0]);
    for (const state of ['exited', 'dead', 'paused', 'removing'] as const) {
      world.containers.set(run.name, { ...run, state });
      expect(world.steps()).toEqual([]);
    }
  });

  it.each([{ jobRun: 'r0' }, { cronFire: 1 }])('waits for another that is in progress (%j)', (other) => {
    const world = oneOff(other);
    expect(world.steps()).toEqual([]);
    expect(statusOf(world)).toMatchObject({ jobRun: { state: 'pending', message: 'waiting' } });
  });

  it.each([{ jobRun: 'r0' }, { cronFire: 1 }])('takes the place of one that has ended (%j)', (other) => {
    const world = oneOff({ ...other, state: 'exited' });
    world.settle();
    expect([...world.containers.values()].map(({ jobRun }) => jobRun)).toEqual(['r1']);
  });

  it('first takes away what its name ran before', () => {
    const world = new World();
    world.desired = [job];
    world.add(aWebService(), 0);
    world.settle();
    expect(world.log.slice(0, 1)).toEqual(['drainReplica blog/web#0']);
    expect([...world.containers.values()].map(({ jobRun }) => jobRun)).toEqual(['r1']);
  });

  it('that a crash has left unstarted is started', () => {
    const world = oneOff({ jobRun: 'r1', state: 'created' });
    expect(world.steps()).toEqual(['startJob blog/web#0']);
  });

  it('goes before a schedule of the same service', () => {
    const world = new World();
    world.desired = [{ ...job, cron: '* * * * *' }];
    expect(world.steps()).toEqual(['startJob blog/web#0']);
  });

  it('that could not be started tells why, and when it is tried again', () => {
    const world = oneOff();
    const failure = nextFailure(undefined, { now: world.now, error: 'cannot pull' });
    world.services = { [key]: { replicas: {}, failures: { [releaseOf(job)]: failure } } };
    expect(world.plan().services).toMatchObject([
      { steps: [], problem: 'cannot pull', retryAt: '2026-06-04T03:00:30.000Z' },
    ]);
    expect(statusOf(world)).toMatchObject({
      state: 'error',
      jobRun: { state: 'pending', message: 'cannot pull' },
    });
    world.now = new Date('2026-06-04T03:00:30.000Z');
    expect(world.steps()).toEqual(['startJob blog/web#0']);
  });

  it.each([
    [{ state: 'running' }, 'running', { state: 'running', exitCode: null, finishedAt: null }],
    [
      { state: 'exited', exitCode: 0 },
      'stopped',
      { state: 'succeeded', exitCode: 0, finishedAt: '2026-06-04T03:01:00.000Z' },
    ],
    [
      { state: 'exited', exitCode: 4 },
      'error',
      { state: 'failed', exitCode: 4, message: 'failed (exit 4)', finishedAt: '2026-06-04T03:01:00.000Z' },
    ],
  ] as const)('that is %j is told as %s', (run, state, jobRun) => {
    const told = statusOf(oneOff({ jobRun: 'r1', ...run }));
    expect(told).toMatchObject({ state, desiredReplicas: 0, jobRun: { startedAt: requestedAt, ...jobRun } });
  });

  it('that is no longer asked for becomes a service that runs on', () => {
    const world = oneOff({ jobRun: 'r1', state: 'exited', exitCode: 0 });
    world.desired = [aService()];
    world.settle();
    expect([...world.containers.values()].map(({ jobRun, state }) => [jobRun, state])).toEqual([
      [undefined, 'running'],
    ]);
  });
});
