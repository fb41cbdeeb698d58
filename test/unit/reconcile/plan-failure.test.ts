import { describe, expect, it } from 'vitest';
import { releaseOf } from '../../../src/lib/reconcile/release.ts';
import { aDatabase, aService, aWebService } from '../../support/builders.ts';
import { settledWorld, World } from '../../support/world.ts';

const web = aWebService({ replicas: 2 });
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

  it('is asked again before it counts as late, when a crash has outlasted its deadline (L32)', () => {
    const world = new World();
    world.desired = [aWebService()];
    world.advance();
    world.crash();
    world.now = new Date(world.now.getTime() + 3_600_000);
    world.settle();
    expect(world.serving('blog/web')).toEqual(['launchpad_blog_web_0']);
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
    expect(world.steps()).toEqual(['recheckImage blog/web']);
    world.advance();
    expect(world.steps()).toEqual([]);
  });

  it.each([
    ['port', { ingress: { domain: 'blog.example.com', port: 9090, edge: 'edge-1' } }],
    ['check', { healthCheck: { path: '/up', intervalMs: 2000, timeoutMs: 2000, healthyThreshold: 2 } }],
  ])('is tried at once with a corrected %s (R18)', (_, corrected) => {
    const world = new World({ crashing: new Set(['b:2']) });
    const service = aWebService({ image: 'b:2', replicas: 1 });
    world.desired = [service];
    world.settle();
    world.desired = [{ ...service, ...corrected }];
    expect(world.steps()).toEqual(['createReplica blog/web#0']);
  });

  it('is tried again when a clock set far back makes its back-off unbelievable', () => {
    const world = new World({ crashing: new Set(['b:2']) });
    const service = aService({ image: 'b:2' });
    world.desired = [service];
    world.settle();
    world.now = new Date(world.now.getTime() - 86_400_000);
    expect(world.steps()).toEqual(['createReplica blog/web#0']);
    expect(world.services['blog/web']?.failures[releaseOf(service)]?.attempts).toBe(1);
  });
});

describe('a database', () => {
  const db = aDatabase();
  const newer = { ...db, image: 'postgres:16' };

  it('is replaced stop-first, and the plan says why (R15)', () => {
    const world = settledWorld(db);
    world.desired = [newer];
    const [plan] = world.plan().services;
    expect(plan?.headline).toEqual({
      action: 'stop-first rollout',
      reason: 'image postgres:15 -> postgres:16 (two engines on one volume would corrupt it)',
    });
    expect(world.steps()).toEqual(['prepareImage blog/db', 'stopReplica blog/db#0']);
  });

  it('never runs twice on its volume, wherever a crash falls (R37)', () => {
    for (let crashAt = 0; crashAt < 15; crashAt += 1) {
      const world = settledWorld(db);
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

  it('is not stopped again for a release that has failed once, until another one is desired', () => {
    const world = new World({ crashing: new Set(['postgres:16']) });
    world.desired = [db];
    world.settle();
    world.desired = [newer];
    world.settle();
    world.now = new Date(world.now.getTime() + 86_400_000);
    world.crash();
    world.log = [];
    world.settle();
    expect(world.log).toEqual(['recheckImage blog/db']);
    world.desired = [{ ...newer, restartAt: '2026-06-05T03:00:00.000Z' }];
    expect(world.steps()).toEqual(['prepareImage blog/db', 'stopReplica blog/db#0']);
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
