import { describe, expect, it } from 'vitest';
import { aService, aWebService } from '../../support/builders.ts';
import { settledWorld, World } from '../../support/world.ts';

const web = aWebService({ replicas: 2 });
const next = { ...web, image: 'registry.example/blog/web:2.0.0' };

describe('a service at its desired state', () => {
  it('is left alone, however often it is looked at (L31)', () => {
    const world = settledWorld(web);
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
    const world = settledWorld(ordered);
    world.desired = [
      { ...ordered, env: { DB2_HOST: 'b', DB_HOST: 'a' }, secretRefs: [...ordered.secretRefs].reverse() },
    ];
    expect(world.steps()).toEqual([]);
  });

  it('is left alone when a field that concerns no container changes (R4)', () => {
    const world = settledWorld(web);
    world.desired = [{ ...web, rollout: { ...web.rollout, drainTimeout: '1m' } }];
    expect(world.steps()).toEqual([]);
  });

  it('has a replica that has left its project network joined again (L31)', () => {
    const world = settledWorld(web);
    const [first] = [...world.containers.values()];
    world.containers.set('launchpad_blog_web_0', {
      ...(first as never as object),
      networks: ['other'],
    } as never);
    expect(world.steps()).toEqual(['joinNetwork blog/web#0']);
  });
});

describe('a new service', () => {
  it('gets its replicas at the lowest free indices, and each serves only once it has passed its probes (L98)', () => {
    const world = new World();
    world.desired = [web];
    expect(world.steps()).toEqual(['createReplica blog/web#0', 'createReplica blog/web#1']);
    world.advance();
    expect(world.serving('blog/web')).toEqual([]);
    expect(world.steps()).toEqual(['probeReplica blog/web#0', 'probeReplica blog/web#1']);
    world.settle();
    expect(world.serving('blog/web')).toEqual(['launchpad_blog_web_0', 'launchpad_blog_web_1']);
    expect(world.log.filter((step) => step.startsWith('probeReplica'))).toHaveLength(4);
  });

  it('is probed at once when the clock was put back behind the last probe', () => {
    const world = new World();
    world.desired = [{ ...web, replicas: 1 }];
    world.advance();
    world.advance();
    expect(world.steps()).toEqual([]);
    world.now = new Date(world.now.getTime() - 5 * 60_000);
    expect(world.steps()).toEqual(['probeReplica blog/web#0']);
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
    expect(world.steps()).toEqual(['forgetReplica blog/web', 'createReplica blog/web#0']);
  });

  it('that crashed between making and starting is started (L32)', () => {
    const world = new World();
    world.desired = [aService()];
    world.advance();
    const name = 'launchpad_blog_web_0';
    world.containers.set(name, { ...world.containers.get(name), state: 'created' } as never);
    expect(world.steps()).toEqual(['startReplica blog/web#0']);
  });
});

describe('a stop that an earlier activation has asked for', () => {
  it.each([
    ['half of its grace', 15_000, 15],
    ['nothing of it', -60_000, 1],
    ['more than all of it, as the clock was set back', 86_400_000, 30],
  ])('is asked for again with what is left: %s', (_, leftMs, graceSeconds) => {
    const world = settledWorld(web);
    const killAt = new Date(world.now.getTime() + leftMs).toISOString();
    const since = world.now.toISOString();
    const record = { phase: 'stopping' as const, since, killAt, afterwards: 'remove' as const, reason: 'x' };
    world.services = { 'blog/web': { replicas: { launchpad_blog_web_1: record }, failures: {} } };
    const [stop] = world.plan().services.flatMap(({ steps }) => steps);
    expect([stop?.action, stop?.args]).toMatchObject(['stopReplica', { graceSeconds }]);
  });
});

describe('a rollout', () => {
  it.each([
    ['image (L21)', { image: 'registry.example/blog/web:2.0.0' }],
    ['cpu (L22)', { cpu: 1024 }],
    ['memory (L22)', { memory: 512 }],
    ['environment (L23)', { env: { A: '1' } }],
    ['restartAt (L23)', { restartAt: '2026-06-04T03:00:00.000Z' }],
    ['port', { ingress: { domain: 'blog.example.com', port: 9090, edge: 'edge-1' } }],
    ['a port where there was one', { ingress: null, healthCheck: null }],
    ['all of them at once (L23)', { image: 'b:2', cpu: 1, memory: 1, env: { A: '1' } }],
  ])('is one for a drift of %s', (_, drift) => {
    const world = settledWorld(web);
    world.desired = [{ ...web, ...drift }];
    world.settle();
    expect(world.log.filter((step) => step.startsWith('createReplica'))).toHaveLength(2);
    expect(world.log.filter((step) => step.startsWith('removeReplica'))).toHaveLength(2);
    expect(world.steps()).toEqual([]);
  });

  it('gives a worker that is to be reached its port, and its route with it', () => {
    const worker = { ...web, ingress: null, healthCheck: null };
    const world = settledWorld(worker);
    world.desired = [web];
    expect(world.plan().services[0]?.headline).toEqual({
      action: 'rollout',
      reason: `port ${web.ingress?.port} is to be reached`,
    });
    world.settle();
    expect(world.running('blog/web').map(({ containerPort }) => containerPort)).toEqual([
      web.ingress?.port,
      web.ingress?.port,
    ]);
  });

  it('goes one replica at a time: surge, prove, out of the routing, drain, stop, remove (L98-L102)', () => {
    const world = settledWorld(web);
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
    const world = settledWorld(web);
    world.desired = [next];
    world.settle(() => {
      expect(world.serving('blog/web').length).toBeGreaterThanOrEqual(2);
      expect(world.running('blog/web').length).toBeLessThanOrEqual(3);
    });
  });

  it('surges by maxSurge replicas at once (L98)', () => {
    const service = { ...web, replicas: 4, rollout: { ...web.rollout, maxSurge: 2 } };
    const world = settledWorld(service);
    world.desired = [{ ...service, image: 'b:2' }];
    expect(world.steps()).toEqual(['createReplica blog/web#4', 'createReplica blog/web#5']);
  });

  it('does not drain before every edge has been told (L99-L101)', () => {
    const world = settledWorld(web);
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
    const world = settledWorld(web);
    world.desired = [next];
    while (!world.log.includes('waitForDrain blog/web#0')) world.advance();
    const [, plan] = [world.now, world.plan()];
    expect(plan.services[0]?.waits).toEqual([
      { until: new Date(world.now.getTime() + 20_000), why: 'replica 0 to drain' },
    ]);
  });

  it('goes past an old replica that keeps restarting: a fix must land (R6)', () => {
    const world = settledWorld(aWebService());
    const name = 'launchpad_blog_web_0';
    world.containers.set(name, { ...world.containers.get(name), state: 'restarting' } as never);
    world.desired = [aWebService({ image: 'b:2' })];
    world.settle();
    expect(world.serving('blog/web')).toEqual(['launchpad_blog_web_1']);
    expect(world.containers.has(name)).toBe(false);
  });

  it('starts again what was changed back while it was on its way out (R10)', () => {
    const world = settledWorld(aWebService());
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
    const world = settledWorld(aWebService());
    world.desired = [aWebService({ image: 'b:2' })];
    while (!world.log.includes('waitForDrain blog/web#0')) world.advance();
    world.now = new Date(world.now.getTime() - 3_600_000);
    expect(world.steps()).toEqual(['waitForDrain blog/web#0']);
    world.settle();
    expect(world.running('blog/web').map(({ image }) => image)).toEqual(['b:2']);
  });

  it('asks again for a stop that a crash may have lost, and removes by force what does not stop (R59)', () => {
    const world = settledWorld(aWebService());
    world.desired = [aWebService({ image: 'b:2' })];
    while (!world.log.includes('stopReplica blog/web#0')) world.advance();
    const name = 'launchpad_blog_web_0';
    world.containers.set(name, { ...world.containers.get(name), state: 'running' } as never);
    world.crash();
    expect(world.steps()).toEqual(['stopReplica blog/web#0']);
    world.advance();
    world.containers.set(name, { ...world.containers.get(name), state: 'running' } as never);
    expect(world.steps()).toEqual([]);
    world.now = new Date(world.now.getTime() + 3_600_000);
    expect(world.steps()).toEqual(['removeReplica blog/web#0']);
  });
});
