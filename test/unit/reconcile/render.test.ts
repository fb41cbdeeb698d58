import { describe, expect, it } from 'vitest';
import { renderPlan } from '../../../src/lib/reconcile/render.ts';
import { aService } from '../../support/builders.ts';
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

  it('with nothing to do says so', () => {
    const world = settledWorld(aService());
    expect(renderPlan(world.facts(), world.plan())).toEqual({
      outcome: 'nothing-to-do',
      text: ['nothing to do'],
      data: { actions: [], waiting: [], deferred: [], errors: [] },
    });
  });
});
