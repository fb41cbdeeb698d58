import { describe, expect, it } from 'vitest';
import { aService, aWebService } from '../../support/builders.ts';
import { settledWorld, World } from '../../support/world.ts';

const web = aWebService({ replicas: 2 });
const next = { ...web, image: 'registry.example/blog/web:2.0.0' };

describe('the number of replicas', () => {
  it('grows at the lowest free indices', () => {
    const world = settledWorld(web);
    world.desired = [{ ...web, replicas: 4 }];
    expect(world.steps()).toEqual(['createReplica blog/web#2', 'createReplica blog/web#3']);
  });

  it('shrinks from the highest index down, each out of the routing first (L100)', () => {
    const world = settledWorld({ ...web, replicas: 3 });
    world.desired = [aWebService()];
    expect(world.steps()).toEqual(['drainReplica blog/web#2', 'drainReplica blog/web#1']);
    world.settle();
    expect(world.serving('blog/web')).toEqual(['launchpad_blog_web_0']);
  });

  it('counts a stopped replica as one to be started (R10)', () => {
    const world = settledWorld(web);
    const name = 'launchpad_blog_web_1';
    world.containers.set(name, {
      ...world.containers.get(name),
      state: 'exited',
      statusText: 'Exited (137)',
    } as never);
    const [plan] = world.plan().services;
    expect(plan?.steps.map(({ action, reason }) => [action, reason])).toEqual([
      ['startReplica', 'it is stopped: Exited (137)'],
    ]);
  });
});

describe('the desired state', () => {
  it('that cannot be read means no action, never that nothing is desired (R9)', () => {
    const world = settledWorld(web);
    world.known = false;
    expect(world.plan()).toEqual({ services: [], deferred: [], errors: [] });
  });

  it('that drops a service removes it gently and leaves the others (L24)', () => {
    const world = new World();
    world.desired = [web, aService({ service: 'worker' })];
    world.settle();
    world.log = [];
    world.desired = [aService({ service: 'worker' })];
    world.settle();
    expect(world.log).toEqual([
      'drainReplica blog/web#0',
      'drainReplica blog/web#1',
      'waitForDrain blog/web#0',
      'waitForDrain blog/web#1',
      'stopReplica blog/web#0',
      'stopReplica blog/web#1',
      'removeReplica blog/web#0',
      'removeReplica blog/web#1',
    ]);
    expect(world.serving('blog/worker')).toHaveLength(1);
  });

  it('with a service that cannot be read keeps what runs of it', () => {
    const world = settledWorld(web);
    world.desired = [];
    world.rejected = [{ index: 0, key: 'blog/web', reason: 'cpu: too small', ingress: undefined }];
    expect(world.steps()).toEqual([]);
    expect(world.plan().errors).toEqual([{ key: 'blog/web', error: 'cpu: too small' }]);
  });

  it('with an illegal name, which may be a slip in any of them, removes nothing of that project', () => {
    const world = settledWorld(web);
    world.desired = [];
    world.rejected = [{ index: 0, key: 'blog/We b', reason: 'service: no name', ingress: undefined }];
    expect(world.steps()).toEqual([]);
  });

  it('is told apart from a service that a person asks for and nobody knows', () => {
    const world = settledWorld(web);
    expect(world.plan({ only: 'blog/wen' }).errors).toEqual([
      { key: 'blog/wen', error: 'no such service is desired or runs here' },
    ]);
    expect(world.plan({ only: 'blog/web' }).errors).toEqual([]);
  });

  it('with a service whose name cannot be read removes nothing at all', () => {
    const world = settledWorld(web);
    world.desired = [];
    world.rejected = [{ index: 0, key: undefined, reason: 'project: missing', ingress: undefined }];
    expect(world.steps()).toEqual([]);
  });

  it('never takes a scheduled or a one-off service for one that runs on (L50)', () => {
    const world = new World();
    world.desired = [
      aService({ service: 'nightly', cron: '0 3 * * *' }),
      aService({ service: 'once', jobRun: { id: 'r1', requestedAt: '2026-06-04T03:00:00.000Z' } }),
    ];
    expect(world.steps()).toEqual(['armSchedule blog/nightly', 'startJob blog/once#0']);
    world.settle();
    expect(world.steps()).toEqual([]);
  });
});

describe('the removal brake', () => {
  function fourServices(): World {
    const world = new World();
    world.desired = ['a', 'b', 'c', 'd'].map((service) => aService({ service }));
    world.settle();
    world.log = [];
    return world;
  }

  it('keeps everything when most services vanish without an announcement, and says what to do', () => {
    const world = fourServices();
    world.desired = world.desired.slice(0, 1);
    expect(world.steps()).toEqual([]);
    const error =
      'desired state drops 3 of 4 running services without an announcement by deploy: kept; if that is meant, run `reeve reconcile --allow-removal`';
    expect(world.plan().errors).toEqual(['blog/b', 'blog/c', 'blog/d'].map((key) => ({ key, error })));
  });

  it.each([
    ['announced', (world: World) => world.announced.push('blog/b', 'blog/c', 'blog/d'), {}],
    ['allowed by a person', () => {}, { allowRemoval: true }],
  ])('lets through what is %s', (_, prepare, options) => {
    const world = fourServices();
    world.desired = world.desired.slice(0, 1);
    prepare(world);
    expect(world.steps(options)).toEqual([
      'stopReplica blog/b#0',
      'stopReplica blog/c#0',
      'stopReplica blog/d#0',
    ]);
  });

  it('does not brake on two services, nor on half of them', () => {
    const world = fourServices();
    world.desired = world.desired.slice(0, 2);
    expect(world.steps()).toEqual(['stopReplica blog/c#0', 'stopReplica blog/d#0']);
  });

  it('lets a removal that has begun go on', () => {
    const world = fourServices();
    world.desired = world.desired.slice(0, 1);
    world.advance(world.plan({ allowRemoval: true }));
    world.settle();
    expect(world.containers.size).toBe(1);
  });
});

describe('a hold', () => {
  it('leaves its service alone and says why; a run for that service alone goes ahead', () => {
    const world = settledWorld(web);
    world.desired = [next];
    const until = new Date(world.now.getTime() + 3_600_000).toISOString();
    const since = world.now.toISOString();
    world.holds = [{ target: 'blog/web', until, reason: 'being looked at', by: 'ann', since }];
    expect(world.plan()).toEqual({
      services: [],
      deferred: [{ key: 'blog/web', reason: 'held: being looked at' }],
      errors: [],
    });
    expect(world.steps({ only: 'blog/web' })).toEqual(['createReplica blog/web#2']);
  });
});
