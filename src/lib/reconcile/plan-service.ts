// What comes next for one long-running service: create, roll, scale, or leave alone. Pure; only the next steps, never
// a whole rollout: the loop looks again after each.
import type { DesiredService } from '../cluster/wire.ts';
import {
  emptyServiceRecord,
  type Facts,
  type FailureRecord,
  type Replica,
  type ServiceRecord,
} from './facts.ts';
import { planDatabase } from './plan-database.ts';
import { planReplica, step, type Wait } from './plan-replica.ts';
import {
  allOf,
  createStep,
  leaveStep,
  nextIndex,
  restartStep,
  type Standing,
  standingOf,
} from './plan-standing.ts';
import { holdingFailure } from './release.ts';
import type { Step } from './steps.ts';

/** What the service is going through, for a person. */
export type Headline = { action: string; reason: string };

export type ServicePlan = {
  key: string;
  /** Done in order; the first that fails ends the service's turn. */
  steps: readonly Step[];
  waits: readonly Wait[];
  headline?: Headline;
  /** Why the service is not where it should be although nothing is being done now. */
  problem?: string;
  /** When a release that is held back is tried again. */
  retryAt?: string;
};

export function planService(
  facts: Facts,
  service: DesiredService,
  replicas: readonly Replica[],
): ServicePlan {
  const key = `${service.project}/${service.service}`;
  const record = facts.record.services[key] ?? emptyServiceRecord;
  const standing = standingOf(service, record, replicas);
  const underWay = planUnderWay(facts, service, record, replicas);
  const headline = headlineOf(standing);
  if (underWay.steps.length > 0) return { key, ...underWay, ...(headline && { headline }) };
  const failure = failureOf(standing, facts.now);
  const next =
    service.database === undefined
      ? planNext(standing, failure?.error)
      : planDatabase(standing, failure?.error);
  const steps = [...forgetMissing(key, record, replicas), ...planNetworks(facts, replicas), ...next.steps];
  const problem = next.problem ?? problemOf(standing);
  if (failure === undefined) {
    return { key, steps, waits: underWay.waits, ...(headline && { headline }), ...(problem && { problem }) };
  }
  if (!facts.rechecked.has(`${key} ${standing.release}`)) {
    const args = { service, release: standing.release, failure };
    steps.push({ action: 'recheckImage', key, reason: 'has the tag moved since it failed', args });
  }
  const retryAt = stopsToRetry(standing) ? undefined : failure.nextTryAt;
  return { key, steps, waits: underWay.waits, ...(problem && { problem, ...(retryAt && { retryAt }) }) };
}

/** What keeps the desired release back. */
function failureOf(standing: Standing, now: Date): FailureRecord | undefined {
  const { record, release } = standing;
  return stopsToRetry(standing) ? record.failures[release] : holdingFailure(record, release, now);
}

/**
 * Each attempt at a database's next release stops the one that serves: a failed one is not repeated by itself, only for
 * another release, a restart that a person asks for, or a tag that has moved.
 */
function stopsToRetry({ service, old, parked }: Standing): boolean {
  return service.database !== undefined && old.length + parked.length > 0;
}

/** A service that is no longer desired: out of the routing, drained, stopped, removed. Volumes stay. */
export function planRemoval(
  facts: Facts,
  key: string,
  replicas: readonly Replica[],
  reason = 'it is no longer desired',
): ServicePlan {
  const record = facts.record.services[key] ?? emptyServiceRecord;
  const underWay = planUnderWay(facts, undefined, record, replicas);
  const settled = replicas.filter((replica) => record.replicas[replica.name] === undefined);
  const leave = settled.map((replica) => leaveStep(replica, undefined, reason));
  const headline = { action: 'remove', reason };
  return {
    key,
    steps: [...forgetMissing(key, record, replicas), ...underWay.steps, ...leave],
    waits: underWay.waits,
    headline,
  };
}

function planUnderWay(
  facts: Facts,
  service: DesiredService | undefined,
  record: ServiceRecord,
  replicas: readonly Replica[],
): { steps: Step[]; waits: Wait[] } {
  const steps: Step[] = [];
  const waits: Wait[] = [];
  for (const replica of replicas) {
    const own = record.replicas[replica.name];
    const plan = own === undefined ? 'nothing' : planReplica(facts, service, replica, own);
    if (plan === 'nothing') continue;
    if ('step' in plan) steps.push(plan.step);
    else waits.push(plan.wait);
  }
  return { steps, waits };
}

function planNext(standing: Standing, heldBack: string | undefined): { steps: Step[]; problem?: string } {
  const { current, old } = standing;
  const leaving = planLeaving(standing);
  if (heldBack !== undefined) {
    return { steps: leaving, ...(isShort(standing) || old.length > 0 ? { problem: heldBack } : {}) };
  }
  const surplus = surplusOf(standing);
  const starts = current
    .filter((replica) => ['created', 'exited', 'dead'].includes(replica.state) && !surplus.includes(replica))
    .map((replica) => restartStep(standing, replica));
  return { steps: [...starts, ...planCreates(standing), ...leaving] };
}

function planCreates(standing: Standing): Step[] {
  const { service, current, starting } = standing;
  const missing = service.replicas - current.length - starting.length;
  const beside = [...standing.old, ...standing.leaving].filter((replica) => replica.state === 'running');
  const room = service.replicas + service.rollout.maxSurge - current.length - starting.length - beside.length;
  const creating = Math.max(0, beside.length === 0 ? missing : Math.min(missing, room));
  const reason = standing.drift ?? (current.length === 0 ? 'it is desired' : 'more replicas are desired');
  return indicesFor(standing, creating).map((index) => createStep(standing, index, reason));
}

/** Beside containers of another release: above all of them. Else the lowest that are free. */
function indicesFor(standing: Standing, howMany: number): number[] {
  if (standing.old.length + standing.leaving.length + standing.parked.length > 0) {
    return Array.from({ length: howMany }, (_, offset) => nextIndex(standing) + offset);
  }
  const taken = new Set(allOf(standing).map((replica) => replica.index));
  const free: number[] = [];
  for (let index = 0; free.length < howMany; index += 1) if (!taken.has(index)) free.push(index);
  return free;
}

/** Old replicas go as far as proven new ones stand in for them. */
function planLeaving(standing: Standing): Step[] {
  const { service, current, old } = standing;
  const serving = current.filter((replica) => replica.state === 'running');
  const oldServing = old.filter((replica) => replica.state === 'running');
  const oldIdle = old.filter((replica) => replica.state !== 'running');
  const dispensable = Math.max(0, serving.length + oldServing.length - service.replicas);
  const reason = standing.drift ?? 'it is replaced';
  const replaced = oldServing.slice(0, dispensable).map((replica) => leaveStep(replica, service, reason));
  const idle =
    serving.length + oldServing.length >= service.replicas
      ? oldIdle.map((replica) => leaveStep(replica, service, reason))
      : [];
  const fewer = service.replicas === 1 ? '1 replica is desired' : `${service.replicas} replicas are desired`;
  const surplus = surplusOf(standing).map((replica) => leaveStep(replica, service, fewer));
  return [...idle, ...replaced, ...surplus];
}

/** From the highest index down, but before any that serves those that do not: else the service could be left without. */
function surplusOf({ service, current }: Standing): Replica[] {
  const idle = current.filter((replica) => replica.state !== 'running');
  const serving = current.filter((replica) => replica.state === 'running');
  const byIndex = (replicas: Replica[]): Replica[] => replicas.sort((a, b) => b.index - a.index);
  return [...byIndex(idle), ...byIndex(serving)].slice(0, Math.max(0, current.length - service.replicas));
}

/** A record whose container does not exist: a crash between writing it down and making it. */
function forgetMissing(key: string, record: ServiceRecord, replicas: readonly Replica[]): Step[] {
  const present = new Set(replicas.map((replica) => replica.name));
  return Object.keys(record.replicas)
    .filter((name) => !present.has(name))
    .map((name) => ({ action: 'forgetReplica', key, reason: `${name} does not exist`, args: { name } }));
}

/** Without its network a container has no port either: joining brings back both. */
export function planNetworks(facts: Facts, replicas: readonly Replica[]): Step[] {
  return replicas
    .filter((replica) => !facts.rechecked.has(`join ${replica.name}`))
    .filter((replica) => replica.state === 'running')
    .filter((replica) => !replica.networks.includes(`launchpadnet_${replica.project}`))
    .map((replica) => step(replica, 'joinNetwork', 'it has left its project network', { replica }));
}

function isShort(standing: Standing): boolean {
  return standing.current.length + standing.starting.length < standing.service.replicas;
}

function problemOf(standing: Standing): string | undefined {
  const looping = standing.current.find((replica) => replica.state === 'restarting');
  if (looping !== undefined) return `replica ${looping.index} keeps restarting: ${looping.statusText}`;
  // Somebody has paused it and knows why: it is told, and left to them.
  const paused = standing.current.find((replica) => replica.state === 'paused');
  return paused && `replica ${paused.index} is paused: let it go on with \`docker unpause ${paused.name}\``;
}

function headlineOf(standing: Standing): Headline | undefined {
  const { service, current, starting, leaving, drift } = standing;
  if (drift !== undefined) {
    const how = service.database === undefined ? 'rollout' : 'stop-first rollout';
    const why = service.database === undefined ? '' : ' (two engines on one volume would corrupt it)';
    return { action: how, reason: `${drift}${why}` };
  }
  if (leaving.length > 0) return { action: 'rollout', reason: 'replaced replicas are leaving' };
  if (current.length + starting.length === 0) return { action: 'create', reason: 'it is desired' };
  if (starting.length > 0) return { action: 'create', reason: 'new replicas are starting' };
  if (current.length < service.replicas) return { action: 'scale up', reason: `${service.replicas} desired` };
  if (current.length > service.replicas)
    return { action: 'scale down', reason: `${service.replicas} desired` };
  const stopped = current.some((replica) => ['created', 'exited', 'dead'].includes(replica.state));
  return stopped ? { action: 'start', reason: 'a replica is stopped' } : undefined;
}
