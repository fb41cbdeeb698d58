// Random histories over the planner: crashes between any two looks, releases that change, break and are fixed, replicas
// that come and go, clocks that jump. Whatever happened, the node ends at the newest good desired state.
import { expect, it } from 'vitest';
import type { DesiredService } from '../../../src/lib/cluster/wire.ts';
import { aDatabase, aWebService } from '../../support/builders.ts';
import { createRandom } from '../../support/random.ts';
import { World } from '../../support/world.ts';

const bad = new Set(['bad:1', 'bad:2']);
const good = ['good:1', 'good:2', 'good:3'];

function randomWorld(seed: number, base: DesiredService) {
  const random = createRandom(seed);
  const world = new World({ crashing: new Set(['bad:1']), sick: new Set(['bad:2']) });
  world.desired = [{ ...base, image: 'good:1' }];
  world.settle();
  return { random, world };
}

it.each(Array.from({ length: 150 }, (_, seed) => [seed]))(
  'a web service never has fewer serving than it had reached, and converges (seed %i) (L32, L98, R12)',
  (seed) => {
    const { random, world } = randomWorld(seed, aWebService({ replicas: 2 }));
    for (let turn = 0; turn < 12; turn += 1) {
      const [current] = world.desired as [DesiredService];
      const image = random.pick([...good, ...bad]);
      world.desired = [{ ...current, image }];
      for (let looks = random.below(14); looks > 0; looks -= 1) {
        if (random.below(4) === 0) world.crash();
        if (random.below(25) === 0) world.now = new Date(world.now.getTime() - 600_000);
        world.advance();
        expect(world.serving('blog/web').length, world.log.slice(-8).join(' | ')).toBeGreaterThanOrEqual(2);
        expect(world.running('blog/web').length).toBeLessThanOrEqual(4);
      }
    }
    const [last] = world.desired as [DesiredService];
    world.desired = [{ ...last, image: 'final:1' }];
    world.crash();
    world.settle();
    expect(world.running('blog/web').map(({ image }) => image)).toEqual(['final:1', 'final:1']);
    expect(world.containers.size).toBe(2);
    expect(Object.keys(world.services['blog/web']?.replicas ?? {})).toEqual([]);
  },
);

it.each(Array.from({ length: 150 }, (_, seed) => [seed]))(
  'a database never runs twice and converges (seed %i) (R37)',
  (seed) => {
    const { random, world } = randomWorld(seed, aDatabase());
    for (let turn = 0; turn < 12; turn += 1) {
      const [current] = world.desired as [DesiredService];
      world.desired = [{ ...current, image: random.pick([...good, ...bad]) }];
      for (let looks = random.below(14); looks > 0; looks -= 1) {
        if (random.below(4) === 0) world.crash();
        world.advance();
        expect(world.running('blog/db').length, world.log.slice(-8).join(' | ')).toBeLessThanOrEqual(1);
      }
    }
    const [last] = world.desired as [DesiredService];
    world.desired = [{ ...last, image: 'final:1' }];
    world.crash();
    world.settle();
    expect(world.running('blog/db').map(({ image }) => image)).toEqual(['final:1']);
    expect(world.containers.size).toBe(1);
    expect(Object.keys(world.services['blog/db']?.replicas ?? {})).toEqual([]);
  },
);
