import { describe, expect, it } from 'vitest';
import { aDatabase, aService } from '../../support/builders.ts';
import { settledWorld, type World } from '../../support/world.ts';

/** In the middle of a replacement: the old container is stopped and kept, the new one has not proven itself. */
function midReplacement(): World {
  const world = settledWorld(aDatabase());
  world.desired = [aDatabase({ image: 'postgres:16' })];
  while (world.containers.size < 2) world.advance();
  return world;
}

describe('a database’s container that is kept for the time of a replacement', () => {
  it('goes too when the database is removed meanwhile', () => {
    const world = midReplacement();
    world.desired = [];
    world.settle();
    expect([...world.containers.keys()]).toEqual([]);
    expect(world.plan().services).toEqual([]);
  });

  it('goes too when the service ceases to be a database meanwhile', () => {
    const world = midReplacement();
    world.desired = [aService({ service: 'db', image: 'postgres:16', volumes: aDatabase().volumes })];
    world.settle();
    expect(world.running('blog/db')).toHaveLength(1);
    expect(world.containers.size).toBe(1);
  });
});
