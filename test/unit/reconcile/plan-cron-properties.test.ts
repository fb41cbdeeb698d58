// Random histories of schedules: crashes before and after a start, clocks that jump, runs that take long, changes of the
// definition. No fire is ever started twice, no two runs are there at once, and time alone keeps the schedule.
import { expect, it } from 'vitest';
import type { Replica } from '../../../src/lib/reconcile/facts.ts';
import { latestFire, parseSchedule } from '../../../src/lib/schedule/schedule.ts';
import { aService } from '../../support/builders.ts';
import { createRandom, type Random } from '../../support/random.ts';
import { World } from '../../support/world.ts';

const schedules = ['* * * * *', '*/5 * * * *', '0 * * * *', '30 3 * * *'];
const minuteMs = 60_000;

/** Runs that have been started, by container id. */
type Started = Map<string, number>;

function observe(world: World, started: Started): void {
  const runs = [...world.containers.values()];
  expect(runs.length, world.log.slice(-6).join(' | ')).toBeLessThanOrEqual(1);
  for (const { containerId, cronFire = 0 } of runs) {
    if (started.has(containerId)) continue;
    expect([...started.values()], world.log.slice(-6).join(' | ')).not.toContain(cronFire);
    expect(cronFire).toBeLessThanOrEqual(world.now.getTime());
    started.set(containerId, cronFire);
  }
}

function disturb(world: World, random: Random): void {
  const [run] = [...world.containers.values()] as [Replica?];
  if (random.below(5) === 0) world.crash();
  world.diesAfterRecord = random.below(6) === 0;
  if (run !== undefined && random.below(3) === 0) {
    world.containers.set(run.name, { ...run, state: 'exited', exitCode: random.below(2) });
  }
  if (run?.state === 'exited' && random.below(8) === 0) world.containers.delete(run.name);
  const stepMs = random.pick([1000, minuteMs, 7 * minuteMs, 90 * minuteMs, 30 * 60 * minuteMs]);
  // Clocks are put right by a little in either direction.
  const back = random.below(12) === 0 ? random.below(9 * minuteMs) : 0;
  world.now = new Date(world.now.getTime() + stepMs - back);
}

it.each(Array.from({ length: 120 }, (_, seed) => [seed]))(
  'no fire is started twice, and a quiet node comes to its latest fire (seed %i) (L51, L60, L61, L62, L63)',
  (seed) => {
    const random = createRandom(seed);
    const cron = random.pick(schedules);
    const service = aService({ cron });
    const world = new World();
    world.desired = [service];
    const started: Started = new Map();
    for (let turn = 0; turn < 80; turn += 1) {
      disturb(world, random);
      if (random.below(10) === 0) world.desired = [{ ...service, image: `img:${turn}` }];
      for (let looks = random.below(3); looks > 0; looks -= 1) {
        world.advance();
        observe(world, started);
      }
    }
    for (const run of world.containers.values())
      world.containers.set(run.name, { ...run, state: 'exited', exitCode: 0 });
    world.diesAfterRecord = false;
    const before = world.now;
    world.now = new Date(before.getTime() + 25 * 60 * minuteMs);
    world.settle();
    observe(world, started);
    const parsed = parseSchedule(cron);
    if ('fault' in parsed) throw new Error(parsed.fault);
    const latest = latestFire(parsed.schedule, { after: before, until: world.now });
    expect([...world.containers.values()].map(({ cronFire }) => cronFire)).toEqual([latest?.getTime()]);
  },
);
