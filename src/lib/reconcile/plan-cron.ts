// What comes next for a scheduled service: one container a fire, never two at a time, and no fire twice. A fire is recorded
// before its run starts, so that a crash in between skips it. The definition counts when a run starts: there is no drift. Pure.
import { type CronStatus, type DesiredService, serviceKey } from '../cluster/wire.ts';
import { decideFire, isAhead, nextFire, parseSchedule } from '../schedule/schedule.ts';
import { emptyServiceRecord, type Facts, type Replica } from './facts.ts';
import { type Headline, planNetworks, planRemoval, type ServicePlan } from './plan-service.ts';
import { holdingFailure, releaseOf } from './release.ts';
import type { Step } from './steps.ts';

export function planCron(facts: Facts, service: DesiredService, replicas: readonly Replica[]): ServicePlan {
  const key = serviceKey(service);
  const others = replicas.filter(({ cronFire }) => cronFire === undefined);
  const leaving = planRemoval(facts, key, others, 'it is no run of the schedule');
  // They may have the name that a run takes.
  if (leaving.steps.length > 0 || leaving.waits.length > 0) return leaving;
  const runs = replicas.filter(({ cronFire }) => cronFire !== undefined);
  const networks = planNetworks(facts, runs);
  const release = releaseOf(service);
  const record = facts.record.services[key] ?? emptyServiceRecord;
  const problem = record.failures[release]?.error;
  const next = planFire(facts, service, runs);
  const held = holdingFailure(record, release, facts.now);
  if (held !== undefined && next?.step.action === 'startRun') {
    return { key, steps: networks, waits: [], problem: held.error, retryAt: held.nextTryAt };
  }
  return {
    key,
    steps: next === undefined ? networks : [...networks, next.step],
    waits: [],
    ...(next && { headline: next.headline }),
    ...(problem && { problem }),
  };
}

/** What the schedule amounts to for others. The last run is told by its container, which is kept until the next. */
export function cronStatusOf(
  facts: Facts,
  service: DesiredService,
  replicas: readonly Replica[],
): CronStatus | undefined {
  const schedule = scheduleOf(service);
  if (schedule === undefined) return undefined;
  const [last] = replicas
    .filter(({ cronFire, state }) => cronFire !== undefined && state !== 'created')
    .sort((a, b) => (b.cronFire ?? 0) - (a.cronFire ?? 0));
  const next = nextFire(schedule, facts.now, service.timeZone);
  return {
    lastRunAt: last?.cronFire === undefined ? null : new Date(last.cronFire).toISOString(),
    lastExitCode: last?.exitCode ?? null,
    nextRunAt: next?.toISOString() ?? null,
  };
}

/** Last fires that nothing is scheduled by any more. Those of backups are their own concern's. */
export function planForgotten(facts: Facts): ServicePlan[] {
  const { desired, cron } = facts;
  if (desired.kind === 'none' || desired.rejected.some(({ key }) => key === undefined)) return [];
  const scheduled = desired.services.filter((service) => service.cron !== undefined).map(serviceKey);
  const kept = new Set([
    ...scheduled,
    ...desired.rejected.map(({ key }) => key),
    // As long as one of its containers is here, its removal may be a mistake that the brake has stopped.
    ...facts.replicas.filter(({ cronFire }) => cronFire !== undefined).map(serviceKey),
  ]);
  return Object.keys(cron.fires)
    .filter((key) => !key.startsWith('backup:') && !kept.has(key))
    .map((key) => {
      const reason = 'nothing is scheduled by this name any more';
      return { key, steps: [{ action: 'forgetSchedule', key, reason, args: {} }], waits: [] };
    });
}

/** Another text is another schedule: it never fires for the time before it was here. */
export function scheduleText({ cron = '', timeZone = 'UTC' }: DesiredService): string {
  return `${cron} ${timeZone}`;
}

type NextFire = { step: Step; headline: Headline };

function planFire(facts: Facts, service: DesiredService, runs: readonly Replica[]): NextFire | undefined {
  const schedule = scheduleOf(service);
  if (schedule === undefined) return undefined;
  const active = runs.find(isActive);
  const { timeZone } = service;
  const anchor = anchorOf(facts, service, runs);
  const decision = decideFire({ schedule, timeZone, anchor, now: facts.now });
  switch (decision.kind) {
    case 'seed':
      return planSeed(facts, service, active);
    case 'clamp': {
      const ahead = anchor?.toISOString();
      const reason = `its last fire, ${ahead}, lies in the future: it counts from now`;
      return armSchedule(service, facts.now, { reason, isDoubtful: true });
    }
    case 'due':
      return active === undefined
        ? startRun(service, decision.fire, runs)
        : skipFire(service, decision.fire, active);
    case 'wait':
      return undefined;
  }
}

/** The newest fire that is known; undefined for a schedule that is new. A state that is not to be believed goes first. */
function anchorOf(facts: Facts, service: DesiredService, runs: readonly Replica[]): Date | undefined {
  const key = serviceKey(service);
  const { fires, schedules = {} } = facts.cron;
  const recorded = fires[key];
  const isChanged = schedules[key] !== undefined && schedules[key] !== scheduleText(service);
  if (recorded === undefined || isChanged) return undefined;
  if (isAhead(new Date(recorded), facts.now)) return new Date(recorded);
  const labels = runs.flatMap(({ cronFire }) => (cronFire === undefined ? [] : [cronFire]));
  const believed = labels.filter((fire) => !isAhead(new Date(fire), facts.now));
  return new Date(Math.max(recorded, ...believed));
}

/** A run that is under way is the last fire, so that those that come meanwhile are not made up for. */
function planSeed(facts: Facts, service: DesiredService, active: Replica | undefined): NextFire {
  const isFirst = facts.cron.fires[serviceKey(service)] === undefined;
  const running = isFirst ? active?.cronFire : undefined;
  const isKnown = running !== undefined && !isAhead(new Date(running), facts.now);
  const reason = isFirst ? 'the schedule is new' : 'the schedule has changed';
  return armSchedule(service, isKnown ? new Date(running) : facts.now, { reason, isDoubtful: false });
}

function armSchedule(
  service: DesiredService,
  anchor: Date,
  { reason, isDoubtful }: { reason: string; isDoubtful: boolean },
): NextFire {
  const args = { fireMs: anchor.getTime(), schedule: scheduleText(service), isDoubtful };
  return {
    step: { action: 'armSchedule', key: serviceKey(service), reason, args },
    headline: { action: 'arm', reason },
  };
}

function startRun(service: DesiredService, fire: Date, previous: readonly Replica[]): NextFire {
  const reason = `it is due since ${fire.toISOString()}`;
  const args = { service, fireMs: fire.getTime(), schedule: scheduleText(service), previous };
  return {
    step: { action: 'startRun', key: serviceKey(service), index: 0, reason, args },
    headline: { action: 'run', reason },
  };
}

function skipFire(service: DesiredService, fire: Date, active: Replica): NextFire {
  const since = active.cronFire === undefined ? 'before' : new Date(active.cronFire).toISOString();
  const reason = `the run of ${since} is in progress: that of ${fire.toISOString()} is left out`;
  const args = { fireMs: fire.getTime(), schedule: scheduleText(service) };
  return {
    step: { action: 'skipFire', key: serviceKey(service), reason, args },
    headline: { action: 'skip', reason },
  };
}

/** What cannot be parsed has been refused with the desired state. */
function scheduleOf({ cron }: DesiredService) {
  const parsed = cron === undefined ? undefined : parseSchedule(cron);
  return parsed === undefined || 'fault' in parsed ? undefined : parsed.schedule;
}

/** A container that was made and never started is no run: the fire that it was for is over. */
export function isActive({ state }: Replica): boolean {
  return state === 'running' || state === 'restarting' || state === 'paused';
}
