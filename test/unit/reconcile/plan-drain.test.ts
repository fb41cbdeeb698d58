// How long a replica drains: the floor, and the edges' acknowledgement that ends it sooner.
import { describe, expect, it } from 'vitest';
import type { DesiredService } from '../../../src/lib/cluster/wire.ts';
import { isAcknowledged } from '../../../src/lib/reconcile/acknowledgement.ts';
import type { PublishedShard, Replica } from '../../../src/lib/reconcile/facts.ts';
import type { Plan } from '../../../src/lib/reconcile/plan.ts';
import { aWebService } from '../../support/builders.ts';
import { createRandom, type Random } from '../../support/random.ts';
import { World } from '../../support/world.ts';

const drained = 'launchpad_blog_web_0';

/** A rollout whose first replica has begun to drain at this instant; the edge has not seen it yet. */
function drainingWorld(drainTimeout: string, drainFloorMs = 90_000): World {
  const world = new World({ drainFloorMs });
  const service = aWebService({
    replicas: 2,
    rollout: { maxSurge: 1, drainTimeout, stopGrace: '30s' },
  });
  world.desired = [service];
  world.settle(() => world.edge.apply());
  world.desired = [{ ...service, image: 'b:2' }];
  while (!world.log.includes('waitForDrain blog/web#0')) {
    if (!world.log.includes('drainReplica blog/web#0')) world.edge.apply();
    world.advance();
  }
  return world;
}

function pass(world: World, ms: number): void {
  world.now = new Date(world.now.getTime() + ms);
}

/** Milliseconds that the drain still takes; 0: the next step is the stop. */
function msLeft(world: World): number {
  const [plan] = world.plan().services;
  if (plan?.steps[0]?.action === 'stopReplica') return 0;
  expect(plan?.steps).toEqual([]);
  return (plan?.waits[0]?.until.getTime() as number) - world.now.getTime();
}

describe('a drain', () => {
  it('lasts drainTimeout from the acknowledgement, as requests are sent until then (L99-L102)', () => {
    const world = drainingWorld('1s');
    expect(msLeft(world)).toBe(90_000);
    pass(world, 10_000);
    world.edge.apply();
    expect(world.steps()).toEqual(['acknowledgeDrain blog/web#0']);
    world.advance();
    expect(world.services['blog/web']?.replicas[drained]).toMatchObject({
      phase: 'draining',
      drainUntil: new Date(world.now.getTime() + 1000).toISOString(),
      acknowledgedAt: world.now.toISOString(),
    });
    expect(msLeft(world)).toBe(1000);
    pass(world, 1000);
    expect(world.steps()).toEqual(['stopReplica blog/web#0']);
  });

  it('of no time ends with the acknowledgement (L101)', () => {
    const world = drainingWorld('0s');
    world.edge.apply();
    world.advance();
    expect(world.steps()).toEqual(['stopReplica blog/web#0']);
  });

  it('lasts to the floor where no acknowledgement comes (L101)', () => {
    const world = drainingWorld('1s');
    world.edge.applyInSilence();
    pass(world, 89_999);
    expect(msLeft(world)).toBe(1);
    pass(world, 1);
    expect(msLeft(world)).toBe(0);
  });

  it('lasts to the floor where the acknowledgement cannot be read, and ends once it can', () => {
    const world = drainingWorld('1s');
    world.edge.apply();
    world.edge.unreadable = true;
    expect(msLeft(world)).toBe(90_000);
    world.edge.unreadable = false;
    expect(world.steps()).toEqual(['acknowledgeDrain blog/web#0']);
  });

  it.each([
    ['the acknowledgement comes just before the floor ends', '1s', 89_500, 500],
    ['drainTimeout is longer than the floor', '2m', 10_000, 110_000],
  ])('is never made longer, as where %s', (_, drainTimeout, passedMs, leftMs) => {
    const world = drainingWorld(drainTimeout);
    pass(world, passedMs);
    world.edge.apply();
    expect(msLeft(world)).toBe(leftMs);
  });

  it('goes on from the record after a crash, at either side of the acknowledgement (L32)', () => {
    const world = drainingWorld('5s');
    world.crash();
    expect(msLeft(world)).toBe(90_000);
    world.edge.apply();
    world.advance();
    world.crash();
    world.edge.unreadable = true;
    expect(msLeft(world)).toBe(5000);
  });

  it('begins anew when the clock is set back, and needs its acknowledgement again', () => {
    const world = drainingWorld('5s');
    world.edge.apply();
    world.advance();
    pass(world, -3_600_000);
    world.edge.unreadable = true;
    expect(world.steps()).toEqual(['waitForDrain blog/web#0']);
    world.advance();
    expect(msLeft(world)).toBe(90_000);
    world.edge.unreadable = false;
    world.advance();
    expect(msLeft(world)).toBe(5000);
  });

  it('is not ended by a shard that was in force once, and is written again', () => {
    const world = new World({ drainFloorMs: 90_000 });
    const service = aWebService({ rollout: { maxSurge: 1, drainTimeout: '1s', stopGrace: '30s' } });
    world.desired = [service];
    world.settle();
    world.edge.apply();
    world.desired = [{ ...service, replicas: 2 }];
    world.settle();
    // The second replica is sent to, and the report that says so could not be written.
    world.edge.applyInSilence();
    world.desired = [service];
    while (!world.log.includes('waitForDrain blog/web#1')) world.advance();
    expect(world.edge.applied.get('edge-1')).toBe(world.edge.published['edge-1']?.fingerprint);
    expect(msLeft(world)).toBe(90_000);
  });

  it('of a replica that no edge has been told of lasts to the floor', () => {
    const world = drainingWorld('1s');
    world.edge.apply();
    world.edge.published = {};
    expect(msLeft(world)).toBe(90_000);
  });

  it('of a service that is removed is acknowledged as well', () => {
    const world = drainingWorld('1s');
    world.desired = [];
    world.advance();
    world.advance();
    world.edge.apply();
    expect(world.steps()).toContain('acknowledgeDrain blog/web#0');
  });
});

describe('an acknowledgement', () => {
  const { now, node } = new World({ drainFloorMs: 90_000 }).facts();
  const leftAt = (agoMs: number) => [
    { domain: 'blog.example.com', hostPort: 20_000, at: new Date(now.getTime() - agoMs).toISOString() },
  ];
  const shard = (fingerprint: string, more: Partial<PublishedShard> = {}): PublishedShard => ({
    fingerprint,
    lastWriteAt: '2026-06-04T03:00:00.000Z',
    backends: [],
    left: leftAt(1000),
    unseen: true,
    ...more,
  });

  it.each<[string, Record<string, PublishedShard>, [string, string | undefined][], boolean]>([
    ['is there once the one edge has it', { a: shard('1') }, [['a', '1']], true],
    ['is none with an older shard', { a: shard('2') }, [['a', '1']], false],
    ['is none from an edge that says nothing of us', { a: shard('1') }, [['a', undefined]], false],
    ['is none from an edge that cannot be read', { a: shard('1') }, [], false],
    ['is none where it was there before', { a: shard('1', { unseen: false }) }, [['a', '1']], false],
    ['is none where nobody was told', { a: shard('1', { left: [] }) }, [['a', '1']], false],
    ['is none where nobody is known', {}, [['a', '1']], false],
    [
      'is none where an earlier version has told',
      { a: { fingerprint: '1', lastWriteAt: 'x' } },
      [['a', '1']],
      false,
    ],
    ['needs every edge that was told', { a: shard('1'), b: shard('2') }, [['a', '1']], false],
    [
      'of all of them is one',
      { a: shard('1'), b: shard('2') },
      [
        ['a', '1'],
        ['b', '2'],
      ],
      true,
    ],
    ['needs no edge that never had it', { a: shard('1'), b: shard('2', { left: [] }) }, [['a', '1']], true],
  ])('%s', (_, shards, applied, expected) => {
    expect(isAcknowledged({ now, node, shards, applied: new Map(applied) }, 20_000)).toBe(expected);
  });
});

/** When the edge sent last to each port, and since when a drain has lasted: in what really passes, whatever the clock says. */
class Watch {
  readonly world: World;
  private setBackMs = 0;
  private readonly sentAt = new Map<number, number>();
  private readonly toldAt = new Map<string, number>();

  constructor(world: World) {
    this.world = world;
  }

  setBack(ms: number): void {
    this.setBackMs += ms;
    this.world.now = new Date(this.world.now.getTime() - ms);
  }

  look(plan: Plan): void {
    const nowMs = this.world.now.getTime() + this.setBackMs;
    for (const port of this.world.edge.inForce.get('edge-1') ?? []) this.sentAt.set(port, nowMs);
    for (const { action, args } of plan.services.flatMap(({ steps }) => steps)) {
      if (action === 'waitForDrain') this.toldAt.set(args.replica.name, nowMs);
      if (action === 'stopReplica') this.check(args.replica, nowMs);
    }
  }

  private check({ name, hostPort }: Replica, nowMs: number): void {
    if (this.world.services['blog/web']?.replicas[name]?.phase !== 'draining') return;
    const sinceSent = nowMs - (this.sentAt.get(Number(hostPort)) ?? 0);
    const sinceTold = nowMs - (this.toldAt.get(name) as number);
    const isEnough = sinceSent >= 5000 || sinceTold >= 20_000;
    expect(isEnough, `${name}: sent ${sinceSent} ms ago, told ${sinceTold} ms ago`).toBe(true);
  }
}

/** What may happen between two looks, each with the odds of one in so many. */
const events: [oneIn: number, happen: (watch: Watch, random: Random) => void][] = [
  [12, ({ world }, random) => change(world, { image: `b:${random.below(100)}` })],
  [15, ({ world }, random) => change(world, { replicas: 1 + random.below(3) })],
  [5, ({ world }) => world.edge.apply()],
  [10, ({ world }) => world.edge.applyInSilence()],
  [10, ({ world }) => world.crash()],
  [20, (watch) => watch.setBack(7000)],
  [2, ({ world }, random) => pass(world, random.below(2000))],
];

function change(world: World, fields: Partial<DesiredService>): void {
  world.desired = world.desired.map((service) => ({ ...service, ...fields }));
}

it.each(Array.from({ length: 150 }, (_, seed) => [seed]))(
  'no replica is stopped before drainTimeout has passed since the edge sent to it, or the floor (seed %i) (L98-L102)',
  (seed) => {
    const random = createRandom(seed);
    const world = new World({ drainFloorMs: 20_000 });
    world.desired = [
      aWebService({ replicas: 2, rollout: { maxSurge: 1, drainTimeout: '5s', stopGrace: '30s' } }),
    ];
    const watch = new Watch(world);
    for (let looks = 0; looks < 200; looks += 1) {
      for (const [oneIn, happen] of events) if (random.below(oneIn) === 0) happen(watch, random);
      const plan = world.plan();
      watch.look(plan);
      world.advance(plan);
    }
  },
);
