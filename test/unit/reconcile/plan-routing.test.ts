// Who is routed where, as far as the planner decides it: a domain that two services of a node claim.
import { describe, expect, it } from 'vitest';
import type { DesiredService } from '../../../src/lib/cluster/wire.ts';
import type { Facts } from '../../../src/lib/reconcile/facts.ts';
import { planShards } from '../../../src/lib/reconcile/plan-routing.ts';
import { findDraining } from '../../../src/lib/reconcile/report-status.ts';
import { aService, aWebService } from '../../support/builders.ts';
import { World } from '../../support/world.ts';

const at = (project: string, domain: string, edge = 'edge-1'): DesiredService =>
  aWebService({ project, ingress: { domain, port: 8080, edge } });
const blog = at('blog', 'www.example.com');

/** `domain port` of each backend on the edge. */
function routes(world: World, edge = 'edge-1'): string[] {
  const shard = planShards(world.facts()).get(edge);
  return (shard?.backends ?? []).map(({ domain, hostPort }) => `${domain} ${hostPort}`);
}

function portsOf(world: World, key: string): (number | undefined)[] {
  return world.running(key).map(({ hostPort }) => hostPort);
}

/** Both run, on ports of their own. */
function runBoth(world: World, second: DesiredService): void {
  world.desired = [...world.desired, second];
  world.settle();
  for (const replica of world.running(`${second.project}/web`)) {
    world.containers.set(replica.name, { ...replica, hostPort: 25_000 });
  }
  world.settle();
}

function settledBlog(): World {
  const world = new World();
  world.desired = [blog];
  world.settle();
  return world;
}

describe('a domain that two services claim on one edge (R48)', () => {
  it('goes to the first by key, and is the other’s error, which runs all the same', () => {
    const world = new World();
    world.desired = [at('shop', 'WWW.example.com'), blog, at('docs', 'docs.example.com')];
    world.settle();
    expect(world.plan().errors).toEqual([
      { key: 'shop/web', error: 'cannot route it: domain "WWW.example.com" is claimed by blog/web too' },
    ]);
    expect(routes(world)).toEqual([
      ...portsOf(world, 'docs/web').map((port) => `docs.example.com ${port}`),
      ...portsOf(world, 'blog/web').map((port) => `www.example.com ${port}`),
    ]);
    expect(world.running('shop/web')).toHaveLength(1);
  });

  it('stays with the one that has it, whatever its key, also while none of its replicas serves', () => {
    const world = settledBlog();
    runBoth(world, at('app', 'www.example.com'));
    expect(world.plan().errors.map(({ key }) => key)).toEqual(['app/web']);
    expect(routes(world)).toEqual(['www.example.com 20000']);
    const [only] = world.running('blog/web');
    world.containers.set('launchpad_blog_web_0', { ...only, state: 'exited', hostPort: undefined } as never);
    world.plan();
    expect(routes(world)).toEqual([]);
    expect(world.plan().errors.map(({ key }) => key)).toEqual(['app/web']);
    world.containers.set('launchpad_blog_web_0', only as never);
    world.settle();
    expect(routes(world)).toEqual(['www.example.com 20000']);
  });

  it('goes to the other once the one that has it claims it no more', () => {
    const world = settledBlog();
    runBoth(world, at('app', 'www.example.com'));
    world.desired = [at('blog', 'blog.example.com'), ...world.desired.slice(1)];
    expect(world.plan().errors).toEqual([]);
    expect(routes(world)).toEqual(['blog.example.com 20000', 'www.example.com 25000']);
  });

  it('stays with one whose definition cannot be read at the moment', () => {
    const world = settledBlog();
    runBoth(world, at('app', 'www.example.com'));
    world.desired = world.desired.slice(1);
    world.rejected = [{ index: 0, key: 'blog/web', reason: 'it is broken', ingress: undefined }];
    expect(world.plan().errors).toEqual([
      { key: 'app/web', error: 'cannot route it: domain "www.example.com" is claimed by blog/web too' },
      { key: 'blog/web', error: 'it is broken' },
    ]);
    expect(routes(world)).toEqual([]);
  });

  it('goes to the one that is run, before one that cannot be and never was', () => {
    const world = new World();
    world.desired = [at('shop', 'www.example.com')];
    world.settle();
    const facts = world.facts();
    const rejected = [{ index: 0, key: 'blog/web', reason: 'it is broken', ingress: blog.ingress }];
    const claimed = { ...facts, shards: {}, desired: { ...facts.desired, rejected } } as Facts;
    const shard = planShards(claimed).get('edge-1');
    expect(shard?.backends.map(({ hostPort }) => hostPort)).toEqual([20_000]);
  });

  it.each([
    ['on two edges', at('shop', 'www.example.com', 'edge-2')],
    ['as a wildcard and a name below it', at('shop', '*.example.com')],
  ])('is none %s', (_, other) => {
    const world = settledBlog();
    runBoth(world, other);
    expect(world.plan().errors).toEqual([]);
    expect([...routes(world), ...routes(world, 'edge-2')].sort()).toEqual(
      [`${other.ingress?.domain} 25000`, 'www.example.com 20000'].sort(),
    );
  });

  it('as a wildcard is one, however it is spelt', () => {
    const world = new World();
    world.desired = [at('blog', '*.Example.com'), at('shop', '*.example.com')];
    expect(world.plan().errors.map(({ key }) => key)).toEqual(['shop/web']);
  });

  it('is told in a run for its own service only, or for all', () => {
    const world = new World();
    world.desired = [blog, at('shop', 'www.example.com')];
    expect(world.plan({ only: 'blog/web' }).errors).toEqual([]);
    expect(world.plan({ only: 'shop/web' }).errors).toHaveLength(1);
  });
});

describe('what drains', () => {
  it('is named with its domain, also where its service is desired no more', () => {
    const world = settledBlog();
    world.desired = [aService({ project: 'other' })];
    const looks: string[] = [];
    while (!world.log.includes('waitForDrain blog/web#0')) {
      const draining = findDraining(world.facts()).map(({ domain, hostPort }) => `${domain} ${hostPort}`);
      looks.push(`${draining.join()} of ${routes(world).length}`);
      world.advance();
    }
    expect(looks).toEqual(['www.example.com 20000 of 0', 'www.example.com 20000 of 0']);
  });
});
