import { describe, expect, it } from 'vitest';
import { releaseOf } from '../../../src/lib/reconcile/release.ts';
import { aDatabase, aService, aWebService } from '../../support/builders.ts';
import { World } from '../../support/world.ts';

const web = aWebService({ replicas: 2 });
const next = { ...web, image: 'registry.example/blog/web:2.0.0' };

function steps(world: World, options: Parameters<World['plan']>[0] = {}): string[] {
  return world
    .plan(options)
    .services.flatMap(({ steps: turn }) => turn)
    .map((step) => `${step.action} ${step.key}${step.index === undefined ? '' : `#${step.index}`}`);
}

function settled(service = web): World {
  const world = new World();
  world.desired = [service];
  world.settle();
  world.log = [];
  return world;
}

describe('a service at its desired state', () => {
  it('is left alone, however often it is looked at (L31)', () => {
    const world = settled();
    expect(world.plan()).toEqual({
      services: [{ key: 'blog/web', steps: [], waits: [] }],
      deferred: [],
      errors: [],
    });
  });

  it('is left alone when only the order of env, secrets or volumes differs (R1)', () => {
    const ordered = aService({
      env: { DB_HOST: 'a', DB2_HOST: 'b' },
      secretRefs: [
        { name: 'A', ssm: '/a' },
        { name: 'B', ssm: '/b' },
      ],
    });
    const world = settled(ordered);
    world.desired = [
      { ...ordered, env: { DB2_HOST: 'b', DB_HOST: 'a' }, secretRefs: [...ordered.secretRefs].reverse() },
    ];
    expect(steps(world)).toEqual([]);
  });

  it('is left alone when a field that concerns no container changes (R4)', () => {
    const world = settled();
    world.desired = [{ ...web, rollout: { ...web.rollout, drainTimeout: '1m' } }];
    expect(steps(world)).toEqual([]);
  });

  it('has a replica that has left its project network joined again (L31)', () => {
    const world = settled();
    const [first] = [...world.containers.values()];
    world.containers.set('launchpad_blog_web_0', { ...(first as never as object), networks: ['other'] } as never);
    expect(steps(world)).toEqual(['joinNetwork blog/web#0']);
  });
});

describe('a new service', () => {
  it('gets its replicas at the lowest free indices, and each serves only once it has passed its probes (L98)', () => {
    const world = new World();
    world.desired = [web];
    expect(steps(world)).toEqual(['createReplica blog/web#0', 'createReplica blog/web#1']);
    world.advance();
    expect(world.serving('blog/web')).toEqual([]);
    expect(steps(world)).toEqual(['probeReplica blog/web#0', 'probeReplica blog/web#1']);
    world.settle();
    expect(world.serving('blog/web')).toEqual(['launchpad_blog_web_0', 'launchpad_blog_web_1']);
    expect(world.log.filter((step) => step.startsWith('probeReplica'))).toHaveLength(4);
  });

  it('that cannot be probed counts as started once it has stayed up (L98)', () => {
    const world = new World();
    world.desired = [aService()];
    world.settle();
    expect(world.log).toEqual([
      'createReplica blog/web#0',
      'checkReplica blog/web#0',
      'admitReplica blog/web#0',
    ]);
  });

  it('that crashed between record and container is made again (L32)', () => {
    const world = new World();
    world.desired = [aService()];
    const since = world.now.toISOString();
    const record = { phase: 'starting' as const, since, deadline: since, release: 'x', attempt: 1 };
    world.services = { 'blog/web': { replicas: { launchpad_blog_web_0: record }, failures: {} } };
    expect(steps(world)).toEqual(['forgetReplica blog/web', 'createReplica blog/web#0']);
  });

  it('that crashed between making and starting is started (L32)', () => {
    const world = new World();
    world.desired = [aService()];
    world.advance();
    const name = 'launchpad_blog_web_0';
    world.containers.set(name, { ...world.containers.get(name), state: 'created' } as never);
    expect(steps(world)).toEqual(['startReplica blog/web#0']);
  });
});

describe('a rollout', () => {
  it.each([
    ['image (L21)', { image: 'registry.example/blog/web:2.0.0' }],
    ['cpu (L22)', { cpu: 1024 }],
    ['memory (L22)', { memory: 512 }],
    ['environment (L23)', { env: { A: '1' } }],
    ['restartAt (L23)', { restartAt: '2026-06-04T03:00:00.000Z' }],
    ['all of them at once (L23)', { image: 'b:2', cpu: 1, memory: 1, env: { A: '1' } }],
  ])('is one for a drift of %s', (_, drift) => {
    const world = settled();
    world.desired = [{ ...web, ...drift }];
    world.settle();
    expect(world.log.filter((step) => step.startsWith('createReplica'))).toHaveLength(2);
    expect(world.log.filter((step) => step.startsWith('removeReplica'))).toHaveLength(2);
    expect(steps(world)).toEqual([]);
  });

  it('goes one replica at a time: surge, prove, out of the routing, drain, stop, remove (L98-L102)', () => {
    const world = settled();
    world.desired = [next];
    world.settle();
    const told = world.log.filter((step) => !step.startsWith('probeReplica'));
    expect(told).toEqual([
      'createReplica blog/web#2',
      'admitReplica blog/web#2',
      'drainReplica blog/web#0',
      'waitForDrain blog/web#0',
      'stopReplica blog/web#0',
      'removeReplica blog/web#0',
      'createReplica blog/web#3',
      'admitReplica blog/web#3',
      'drainReplica blog/web#1',
      'waitForDrain blog/web#1',
      'stopReplica blog/web#1',
      'removeReplica blog/web#1',
    ]);
  });

  it('never leaves fewer serving than desired, and never runs more than the surge allows (L98)', () => {
    const world = settled();
    world.desired = [next];
    world.settle(() => {
      expect(world.serving('blog/web').length).toBeGreaterThanOrEqual(2);
      expect(world.running('blog/web').length).toBeLessThanOrEqual(3);
    });
  });

  it('surges by maxSurge replicas at once (L98)', () => {
    const service = { ...web, replicas: 4, rollout: { ...web.rollout, maxSurge: 2 } };
    const world = settled(service);
    world.desired = [{ ...service, image: 'b:2' }];
    expect(steps(world)).toEqual(['createReplica blog/web#4', 'createReplica blog/web#5']);
  });

  it('does not drain before every edge has been told (L99-L101)', () => {
    const world = settled();
    world.desired = [next];
    world.routingPublished = false;
    for (let looks = 0; looks < 12; looks += 1) world.advance();
    expect(world.running('blog/web').map(({ index }) => index)).toEqual([0, 1, 2]);
    expect(world.log).toContain('drainReplica blog/web#0');
    expect(world.log).not.toContain('waitForDrain blog/web#0');
    world.routingPublished = true;
    world.settle();
    expect(world.serving('blog/web')).toEqual(['launchpad_blog_web_2', 'launchpad_blog_web_3']);
  });

  it.each([
    ['the floor, where drainTimeout is shorter (L101)', '1s', 90_000, 90_000],
    ['drainTimeout, where it is longer than the floor', '2m', 90_000, 120_000],
    ['the floor, where drainTimeout is no duration', 'soon', 3000, 3000],
  ])('drains for %s', (_, drainTimeout, drainFloorMs, expected) => {
    const world = new World({ drainFloorMs });
    const service = { ...web, rollout: { ...web.rollout, drainTimeout } };
    world.desired = [service];
    world.settle();
    world.desired = [{ ...service, image: 'b:2' }];
    while (!world.log.includes('drainReplica blog/web#0')) world.advance();
    const [step] = world.plan().services.flatMap(({ steps: turn }) => turn);
    expect(step).toMatchObject({ action: 'waitForDrain', args: { drainMs: expected } });
  });

  it('does not wait for the health of what it drains (R13)', () => {
    const world = settled();
    world.desired = [next];
    while (!world.log.includes('waitForDrain blog/web#0')) world.advance();
    const [, plan] = [world.now, world.plan()];
    expect(plan.services[0]?.waits).toEqual([
      { until: new Date(world.now.getTime() + 20_000), why: 'replica 0 to drain' },
    ]);
  });

  it('goes past an old replica that keeps restarting: a fix must land (R6)', () => {
    const world = settled(aWebService());
    const name = 'launchpad_blog_web_0';
    world.containers.set(name, { ...world.containers.get(name), state: 'restarting' } as never);
    world.desired = [aWebService({ image: 'b:2' })];
    world.settle();
    expect(world.serving('blog/web')).toEqual(['launchpad_blog_web_1']);
    expect(world.containers.has(name)).toBe(false);
  });

  it('starts again what was changed back while it was on its way out (R10)', () => {
    const world = settled(aWebService());
    world.desired = [aWebService({ image: 'b:2' })];
    while (!world.log.includes('stopReplica blog/web#0')) world.advance();
    world.desired = [aWebService()];
    world.settle();
    expect(world.running('blog/web').map(({ image }) => image)).toEqual([web.image]);
  });

  it('abandons what it was starting when a newer release is desired, at once', () => {
    const world = new World({ sick: new Set(['b:2']) });
    world.desired = [aWebService()];
    world.settle();
    world.desired = [aWebService({ image: 'b:2' })];
    world.advance();
    world.advance();
    world.desired = [aWebService({ image: 'c:3' })];
    world.settle();
    expect(world.running('blog/web').map(({ image }) => image)).toEqual(['c:3']);
    expect(world.log).not.toContain('abortReplica blog/web#1');
  });

  it('restarts its wait rather than end it at once when the clock is set back', () => {
    const world = settled(aWebService());
    world.desired = [aWebService({ image: 'b:2' })];
    while (!world.log.includes('waitForDrain blog/web#0')) world.advance();
    world.now = new Date(world.now.getTime() - 3_600_000);
    expect(steps(world)).toEqual(['waitForDrain blog/web#0']);
    world.settle();
    expect(world.running('blog/web').map(({ image }) => image)).toEqual(['b:2']);
  });

  it('asks again for a stop that a crash may have lost, and removes by force what does not stop (R59)', () => {
    const world = settled(aWebService());
    world.desired = [aWebService({ image: 'b:2' })];
    while (!world.log.includes('stopReplica blog/web#0')) world.advance();
    const name = 'launchpad_blog_web_0';
    world.containers.set(name, { ...world.containers.get(name), state: 'running' } as never);
    world.crash();
    expect(steps(world)).toEqual(['stopReplica blog/web#0']);
    world.advance();
    world.containers.set(name, { ...world.containers.get(name), state: 'running' } as never);
    expect(steps(world)).toEqual([]);
    world.now = new Date(world.now.getTime() + 3_600_000);
    expect(steps(world)).toEqual(['removeReplica blog/web#0']);
  });
});

describe('a release that does not come up', () => {
  it.each([
    ['exits', new World({ crashing: new Set(['b:2']) })],
    ['never passes its probe', new World({ sick: new Set(['b:2']) })],
  ])('and %s leaves the same old containers serving (R12)', (_, world) => {
    world.desired = [web];
    world.settle();
    const before = world.running('blog/web').map(({ containerId }) => containerId);
    world.desired = [{ ...web, image: 'b:2' }];
    world.settle();
    expect(world.running('blog/web').map(({ containerId }) => containerId)).toEqual(before);
    expect(world.serving('blog/web')).toHaveLength(2);
    expect(world.containers.size).toBe(2);
  });

  it('is told with what was probed and what came back', () => {
    const world = new World({ sick: new Set(['b:2']) });
    world.desired = [aWebService({ image: 'b:2' })];
    world.settle();
    const failures = Object.values(world.services['blog/web']?.failures ?? {});
    expect(failures.map(({ error }) => error)).toEqual([
      'http://127.0.0.1:20000/healthz did not become healthy in time: got 500: no database',
    ]);
  });

  it('is not tried again before its back-off is over, and then once, with a longer one (R18)', () => {
    const world = new World({ crashing: new Set(['b:2']) });
    world.desired = [aService({ image: 'b:2' })];
    world.settle();
    const creates = () => world.log.filter((step) => step.startsWith('createReplica')).length;
    expect(creates()).toBe(1);
    expect(world.plan().services[0]?.problem).toBe('it did not stay up: Up 1 second');
    world.now = new Date(world.now.getTime() + 30_000);
    world.settle();
    expect(creates()).toBe(2);
    world.now = new Date(world.now.getTime() + 30_000);
    world.settle();
    expect(creates()).toBe(2);
    world.now = new Date(world.now.getTime() + 31_000);
    world.settle();
    expect(creates()).toBe(3);
  });

  it('does not keep a newer release waiting (R18)', () => {
    const world = new World({ crashing: new Set(['b:2']) });
    world.desired = [web];
    world.settle();
    world.desired = [{ ...web, image: 'b:2' }];
    world.settle();
    world.desired = [{ ...web, image: 'c:3' }];
    world.settle();
    expect(world.running('blog/web').map(({ image }) => image)).toEqual(['c:3', 'c:3']);
  });

  it('is looked at once a run for a tag that has moved (R18)', () => {
    const world = new World({ crashing: new Set(['b:2']) });
    const service = aService({ image: 'b:2' });
    world.desired = [service];
    world.settle();
    world.crash();
    expect(steps(world)).toEqual(['recheckImage blog/web']);
    world.advance();
    expect(steps(world)).toEqual([]);
  });

  it('is tried again when a clock set far back makes its back-off unbelievable', () => {
    const world = new World({ crashing: new Set(['b:2']) });
    const service = aService({ image: 'b:2' });
    world.desired = [service];
    world.settle();
    world.now = new Date(world.now.getTime() - 86_400_000);
    expect(steps(world)).toEqual(['createReplica blog/web#0']);
    expect(world.services['blog/web']?.failures[releaseOf(service)]?.attempts).toBe(1);
  });
});

describe('a database', () => {
  const db = aDatabase();
  const newer = { ...db, image: 'postgres:16' };

  it('is replaced stop-first, and the plan says why (R15)', () => {
    const world = settled(db);
    world.desired = [newer];
    const [plan] = world.plan().services;
    expect(plan?.headline).toEqual({
      action: 'stop-first rollout',
      reason: 'image postgres:15 -> postgres:16 (two engines on one volume would corrupt it)',
    });
    expect(steps(world)).toEqual(['prepareImage blog/db', 'stopReplica blog/db#0']);
  });

  it('never runs twice on its volume, wherever a crash falls (R37)', () => {
    for (let crashAt = 0; crashAt < 15; crashAt += 1) {
      const world = settled(db);
      world.desired = [newer];
      let looks = 0;
      world.settle(() => {
        if (looks++ === crashAt) world.crash();
        expect(world.running('blog/db').length).toBeLessThanOrEqual(1);
      });
      expect(world.running('blog/db').map(({ image }) => image)).toEqual(['postgres:16']);
      expect(world.containers.size).toBe(1);
    }
  });

  it('is put back, the same container, when the new one does not come up (R12, R37)', () => {
    const world = new World({ crashing: new Set(['postgres:16']) });
    world.desired = [db];
    world.settle();
    const before = world.running('blog/db').map(({ containerId }) => containerId);
    world.desired = [newer];
    world.settle(() => expect(world.running('blog/db').length).toBeLessThanOrEqual(1));
    expect(world.running('blog/db').map(({ containerId }) => containerId)).toEqual(before);
    expect(world.serving('blog/db')).toEqual(['launchpad_blog_db_0']);
  });
});

describe('the number of replicas', () => {
  it('grows at the lowest free indices', () => {
    const world = settled();
    world.desired = [{ ...web, replicas: 4 }];
    expect(steps(world)).toEqual(['createReplica blog/web#2', 'createReplica blog/web#3']);
  });

  it('shrinks from the highest index down, each out of the routing first (L100)', () => {
    const world = settled({ ...web, replicas: 3 });
    world.desired = [aWebService()];
    expect(steps(world)).toEqual(['drainReplica blog/web#2', 'drainReplica blog/web#1']);
    world.settle();
    expect(world.serving('blog/web')).toEqual(['launchpad_blog_web_0']);
  });

  it('counts a stopped replica as one to be started (R10)', () => {
    const world = settled();
    const name = 'launchpad_blog_web_1';
    world.containers.set(name, { ...world.containers.get(name), state: 'exited', statusText: 'Exited (137)' } as never);
    const [plan] = world.plan().services;
    expect(plan?.steps.map(({ action, reason }) => [action, reason])).toEqual([
      ['startReplica', 'it is stopped: Exited (137)'],
    ]);
  });
});

describe('the desired state', () => {
  it('that cannot be read means no action, never that nothing is desired (R9)', () => {
    const world = settled();
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
    const world = settled();
    world.desired = [];
    world.rejected = [{ index: 0, key: 'blog/web', reason: 'cpu: too small', ingress: undefined }];
    expect(steps(world)).toEqual([]);
    expect(world.plan().errors).toEqual([{ key: 'blog/web', error: 'cpu: too small' }]);
  });

  it('with a service whose name cannot be read removes nothing at all', () => {
    const world = settled();
    world.desired = [];
    world.rejected = [{ index: 0, key: undefined, reason: 'project: missing', ingress: undefined }];
    expect(steps(world)).toEqual([]);
  });

  it('leaves scheduled and one-off services to their own planner (L50)', () => {
    const world = new World();
    world.desired = [
      aService({ service: 'nightly', cron: '0 3 * * *' }),
      aService({ service: 'once', jobRun: { id: 'r1', requestedAt: '2026-06-04T03:00:00.000Z' } }),
    ];
    expect(steps(world)).toEqual([]);
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
    expect(steps(world)).toEqual([]);
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
    expect(steps(world, options)).toEqual(['stopReplica blog/b#0', 'stopReplica blog/c#0', 'stopReplica blog/d#0']);
  });

  it('does not brake on two services, nor on half of them', () => {
    const world = fourServices();
    world.desired = world.desired.slice(0, 2);
    expect(steps(world)).toEqual(['stopReplica blog/c#0', 'stopReplica blog/d#0']);
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
    const world = settled();
    world.desired = [next];
    const until = new Date(world.now.getTime() + 3_600_000).toISOString();
    const since = world.now.toISOString();
    world.holds = [{ target: 'blog/web', until, reason: 'being looked at', by: 'ann', since }];
    expect(world.plan()).toEqual({
      services: [],
      deferred: [{ key: 'blog/web', reason: 'held: being looked at' }],
      errors: [],
    });
    expect(steps(world, { only: 'blog/web' })).toEqual(['createReplica blog/web#2']);
  });
});
