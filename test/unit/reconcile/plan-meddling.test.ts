// What somebody else has done to containers of ours, met by the planner.
import { describe, expect, it } from 'vitest';
import { aWebService } from '../../support/builders.ts';
import { settledWorld, type World } from '../../support/world.ts';

const web = aWebService({ replicas: 3 });

function change(world: World, index: number, changed: object): void {
  const name = `launchpad_blog_web_${index}`;
  world.containers.set(name, { ...world.containers.get(name), ...changed } as never);
}

describe('fewer replicas', () => {
  it('go from the highest index down (L96)', () => {
    const world = settledWorld(web);
    world.desired = [{ ...web, replicas: 1 }];
    world.settle();
    expect(world.serving('blog/web')).toEqual(['launchpad_blog_web_0']);
  });

  it('leave those that serve, and do not start one that was stopped only to keep the lowest index', () => {
    const world = settledWorld(web);
    change(world, 0, { state: 'exited' });
    world.desired = [{ ...web, replicas: 1 }];
    expect(world.steps()).toEqual(['removeReplica blog/web#0', 'drainReplica blog/web#2']);
    world.settle((now) => expect(now.serving('blog/web')).toContain('launchpad_blog_web_1'));
    expect([...world.containers.keys()]).toEqual(['launchpad_blog_web_1']);
  });
});

describe('a container that somebody has', () => {
  it('paused is a problem of its service, and is left to them', () => {
    const world = settledWorld(web);
    change(world, 1, { state: 'paused', statusText: 'Up 1 second (Paused)' });
    expect(world.plan().services).toEqual([
      {
        key: 'blog/web',
        steps: [],
        waits: [],
        problem: 'replica 1 is paused: let it go on with `docker unpause launchpad_blog_web_1`',
      },
    ]);
  });

  it('taken off all networks, and so out of the routing, is joined to its own again (L31)', () => {
    const world = settledWorld(web);
    change(world, 2, { networks: [], hostPort: undefined, containerPort: undefined });
    expect(world.steps()).toEqual(['joinNetwork blog/web#2']);
  });
});
