// What the handlers of runs leave behind, for a node in memory.
import type { DesiredService } from '../../src/lib/cluster/wire.ts';
import type { Facts, Replica } from '../../src/lib/reconcile/facts.ts';
import { scheduleText } from '../../src/lib/reconcile/plan-cron.ts';
import type { Step, StepOf } from '../../src/lib/reconcile/steps.ts';

type RunStep = Extract<
  Step,
  { action: 'armSchedule' | 'skipFire' | 'startRun' | 'forgetSchedule' | 'startJob' }
>;

type RunWorld = {
  containers: Map<string, Replica>;
  cron: Facts['cron'];
  /** Set: the process dies once a fire is recorded, before its run starts. */
  diesAfterRecord: boolean;
  add(service: DesiredService, index: number, overrides: Partial<Replica>): Replica;
};

export function applyRunStep(world: RunWorld, step: RunStep): boolean {
  switch (step.action) {
    case 'armSchedule':
    case 'skipFire':
      recordFire(world, step.key, step.args);
      return true;
    case 'startRun':
      return startRun(world, step);
    case 'forgetSchedule': {
      const { [step.key]: _, ...fires } = world.cron.fires;
      const { [step.key]: __, ...schedules } = world.cron.schedules ?? {};
      world.cron = { fires, schedules };
      return true;
    }
    case 'startJob': {
      const { service, own, previous } = step.args;
      for (const run of own === undefined ? previous : [...previous, own]) world.containers.delete(run.name);
      world.add(service, 0, { jobRun: service.jobRun?.id });
      return true;
    }
  }
}

/** A schedule that was last at work at this instant. */
export function setAnchor(world: RunWorld, service: DesiredService, at: string): void {
  const key = `${service.project}/${service.service}`;
  recordFire(world, key, { fireMs: Date.parse(at), schedule: scheduleText(service) });
}

function startRun(world: RunWorld, { key, args }: StepOf<'startRun'>): boolean {
  recordFire(world, key, args);
  if (world.diesAfterRecord) return false;
  for (const run of args.previous) world.containers.delete(run.name);
  world.add(args.service, 0, { cronFire: args.fireMs });
  return true;
}

function recordFire(
  world: RunWorld,
  key: string,
  { fireMs, schedule }: { fireMs: number; schedule: string },
): void {
  const { fires, schedules } = world.cron;
  world.cron = { fires: { ...fires, [key]: fireMs }, schedules: { ...schedules, [key]: schedule } };
}
