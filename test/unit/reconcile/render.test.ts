import { describe, expect, it } from 'vitest';
import { renderPlan } from '../../../src/lib/reconcile/render.ts';
import { aService, aWebService } from '../../support/builders.ts';
import { settledWorld, World } from '../../support/world.ts';

describe('a plan', () => {
  it('with a release that is held back has not converged, and tells when it is tried again', () => {
    const world = new World({ crashing: new Set(['b:2']) });
    world.desired = [aService({ image: 'b:2' })];
    world.settle();
    const [failure] = Object.values(world.services['blog/web']?.failures ?? {});
    world.now = new Date(Date.parse(String(failure?.nextTryAt)) - 20_500);
    const waiting = {
      key: 'blog/web',
      message: 'it did not stay up: Up 1 second',
      retryAt: failure?.nextTryAt,
    };
    expect(renderPlan(world.facts(), world.plan())).toEqual({
      outcome: 'failed',
      text: ['blog/web: tried again in 21s: it did not stay up: Up 1 second'],
      data: { actions: [], waiting: [waiting], deferred: [], errors: [] },
    });
  });

  it.each([
    ['about', 'drainTimeout is the longer one', '2m', 'about 4m 8s'],
    ['at most', 'an edge may end the drain sooner', '1s', 'at most 3m 8s'],
  ])('of a rollout tells how long it takes: %s, where %s', (_, __, drainTimeout, told) => {
    const world = new World({ drainFloorMs: 90_000 });
    const service = aWebService({ replicas: 2, rollout: { maxSurge: 1, drainTimeout, stopGrace: '30s' } });
    world.desired = [service];
    world.settle();
    world.desired = [{ ...service, image: 'b:2' }];
    const reason = `image ${service.image} -> b:2`;
    expect(renderPlan(world.facts(), world.plan()).text).toEqual([`rollout blog/web: ${reason} (${told})`]);
  });

  it('with nothing to do says so', () => {
    const world = settledWorld(aService());
    expect(renderPlan(world.facts(), world.plan())).toEqual({
      outcome: 'nothing-to-do',
      text: ['nothing to do'],
      data: { actions: [], waiting: [], deferred: [], errors: [] },
    });
  });
});
