// Which containers of runs `prune` takes away.
import { expect, it } from 'vitest';
import { type OwnContainer, planPrune } from '../../../src/lib/prune/plan.ts';

function pruned(overrides: Partial<OwnContainer>, desired: readonly string[] = []): string[] {
  const container: OwnContainer = {
    ...{ containerId: 'c1', name: 'launchpad_blog_nightly_0', key: 'blog/nightly' },
    ...{ state: 'exited', isRun: true },
    ...overrides,
  };
  const nothing = { images: [], usedImages: new Set<string>(), services: [], known: [] };
  const steps = planPrune({ ...nothing, containers: [container], desiredKeys: new Set(desired) });
  return steps.map((step) => (step.action === 'removeRun' ? step.containerId : step.reference));
}

it.each(['created', 'exited', 'dead'] as const)(
  'a run that is %s goes where its service is gone',
  (state) => {
    expect(pruned({ state })).toEqual(['c1']);
  },
);

it('the last run of a service that is desired stays (L64)', () => {
  expect(pruned({}, ['blog/nightly'])).toEqual([]);
});

it.each(['running', 'paused', 'restarting', 'removing'] as const)('a run that is %s stays', (state) => {
  expect(pruned({ state })).toEqual([]);
});

it('a replica that has ended is none of its business', () => {
  expect(pruned({ isRun: false })).toEqual([]);
});
