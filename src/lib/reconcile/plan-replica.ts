// What comes next for a replica that is between two places: starting, draining or stopping. Pure.
import { parseWireDuration } from '../cluster/duration.ts';
import type { DesiredService } from '../cluster/wire.ts';
import { isAcknowledged } from './acknowledgement.ts';
import type { Facts, ProbeState, Replica, ReplicaRecord } from './facts.ts';
import { releaseOf } from './release.ts';
import type { Step } from './steps.ts';

export type Wait = { until: Date; why: string };
export type ReplicaPlan = { step: Step } | { wait: Wait } | 'nothing';

/** How long a replica that cannot be probed must stay up before it counts as started. */
const settleMs = 3000;
/** Added to the engine's own grace before we stop believing that it will end the container. */
const stopSlackMs = 10_000;

export function planReplica(
  facts: Facts,
  service: DesiredService | undefined,
  replica: Replica,
  record: ReplicaRecord,
): ReplicaPlan {
  switch (record.phase) {
    case 'starting':
      return planStarting(facts, service, replica, record);
    case 'draining':
      return planDraining(facts, service, replica, record);
    case 'stopping':
      return planStopping(facts, service, replica, record);
  }
}

/** Wire rule: at least 30 s, or eight rounds of the health check. In milliseconds. */
export function startDeadlineMs(service: DesiredService): number {
  const check = service.healthCheck;
  if (check === null) return 30_000;
  return Math.max(30_000, (check.timeoutMs + check.intervalMs) * check.healthyThreshold * 8);
}

/** Where a starting replica is probed, or undefined where there is nothing to ask. */
export function probeUrl(facts: Facts, service: DesiredService, replica: Replica): string | undefined {
  if (service.healthCheck === null || replica.hostPort === undefined) return undefined;
  const { probeHost } = facts.node;
  const host = probeHost.includes(':') ? `[${probeHost}]` : probeHost;
  return `http://${host}:${replica.hostPort}${service.healthCheck.path}`;
}

/** Seconds as the engine takes them: rounded up, at least one. */
export function graceSeconds(service: DesiredService | undefined): number {
  const graceMs = parseWireDuration(service?.rollout.stopGrace ?? '30s');
  return Math.max(1, Math.ceil(graceMs / 1000));
}

/** The wait between leaving the routing and being stopped. A floor stands in for the edges' acknowledgement. */
export function drainMs(facts: Facts, service: DesiredService | undefined): number {
  return Math.max(drainTimeoutMs(service), facts.node.drainFloorMs);
}

/** What is left to requests under way once no edge sends any more. */
export function drainTimeoutMs(service: DesiredService | undefined): number {
  return parseWireDuration(service?.rollout.drainTimeout ?? '20s');
}

function planStarting(
  facts: Facts,
  service: DesiredService | undefined,
  replica: Replica,
  record: ReplicaRecord & { phase: 'starting' },
): ReplicaPlan {
  if (service === undefined || releaseOf(service) !== record.release) {
    return stopNow(service, replica, 'it was replaced before it served');
  }
  const attempt = { release: record.release, attempt: record.attempt };
  if (replica.state === 'created') {
    return {
      step: step(replica, 'startReplica', 'it was made and not started', { service, replica, ...attempt }),
    };
  }
  if (replica.state !== 'running')
    return abort(service, replica, { ...attempt, why: `it did not stay up: ${replica.statusText}` });
  return planProbing(facts, service, replica, record);
}

function planProbing(
  facts: Facts,
  service: DesiredService,
  replica: Replica,
  record: ReplicaRecord & { phase: 'starting' },
): ReplicaPlan {
  const probe = facts.probes.get(replica.name);
  const url = probeUrl(facts, service, replica);
  const needed = url === undefined ? 1 : (service.healthCheck?.healthyThreshold ?? 1);
  if (probe !== undefined && probe.passes >= needed) {
    const reason = url === undefined ? probe.last : `${probe.passes} of ${needed} probes passed`;
    return { step: step(replica, 'admitReplica', reason, { replica, release: record.release }) };
  }
  const why = probe?.failed ?? describeLate(url, probe, record, facts.now);
  if (why !== undefined)
    return abort(service, replica, { release: record.release, attempt: record.attempt, why });
  const nextAt = probe?.nextAt ?? firstLookAt(url, record.since, facts.now);
  if (isSoon(nextAt, facts.now, service)) return { wait: { until: nextAt, why: 'the next health probe' } };
  if (url === undefined) return { step: step(replica, 'checkReplica', 'has it stayed up', { replica }) };
  return { step: step(replica, 'probeReplica', 'is it healthy', { service, replica, url }) };
}

/** Further ahead than one pause between two looks, it was set by a clock that has been put back since. */
function isSoon(nextAt: Date, now: Date, service: DesiredService): boolean {
  const waitMs = nextAt.getTime() - now.getTime();
  return waitMs > 0 && waitMs <= Math.max(settleMs, service.healthCheck?.intervalMs ?? 0);
}

/** Late is what has just failed after its deadline: after a crash it is asked again first, and a passing one goes on. */
function describeLate(
  url: string | undefined,
  probe: ProbeState | undefined,
  record: ReplicaRecord & { phase: 'starting' },
  now: Date,
): string | undefined {
  if (probe === undefined || probe.passes > 0 || now.getTime() < Date.parse(record.deadline))
    return undefined;
  return `${url ?? 'it'} did not become healthy in time: ${probe.last}`;
}

/** At once where something can be asked; else after a while of staying up. `since` may lie ahead of a clock set back. */
function firstLookAt(url: string | undefined, since: string, now: Date): Date {
  return url === undefined ? new Date(Math.min(Date.parse(since), now.getTime()) + settleMs) : now;
}

function planDraining(
  facts: Facts,
  service: DesiredService | undefined,
  replica: Replica,
  record: ReplicaRecord & { phase: 'draining' },
): ReplicaPlan {
  if (replica.state !== 'running') return remove(replica, `it ended while draining: ${replica.statusText}`);
  const clockWentBack = Date.parse(record.since) > facts.now.getTime() + 1000;
  if (record.drainUntil === null || clockWentBack) {
    if (!facts.routingPublished) {
      return { wait: { until: later(facts.now, 1000), why: 'the routing without it to be published' } };
    }
    const args = { replica, drainMs: drainMs(facts, service) };
    return { step: step(replica, 'waitForDrain', 'every edge has been told', args) };
  }
  const until = new Date(record.drainUntil);
  if (facts.now >= until) return stopNow(service, replica, record.reason);
  const args = { replica, drainMs: drainTimeoutMs(service) };
  const isSooner = record.acknowledgedAt === undefined && later(facts.now, args.drainMs) < until;
  if (isSooner && isAcknowledged(facts, replica.hostPort)) {
    return { step: step(replica, 'acknowledgeDrain', 'no edge sends to it any more', args) };
  }
  return { wait: { until, why: `replica ${replica.index} to drain` } };
}

function planStopping(
  facts: Facts,
  service: DesiredService | undefined,
  replica: Replica,
  record: ReplicaRecord & { phase: 'stopping' },
): ReplicaPlan {
  const alive = ['running', 'restarting', 'paused'].includes(replica.state);
  // A container is kept for the time of an attempt, which only a database that is desired can be going through.
  const kept = record.afterwards === 'keep' && service?.database !== undefined;
  if (!alive) return kept ? 'nothing' : remove(replica, record.reason);
  const killAt = later(new Date(record.killAt), stopSlackMs);
  if (facts.stopsAsked.has(replica.name)) {
    if (facts.now < killAt) return { wait: { until: killAt, why: `replica ${replica.index} to stop` } };
    return remove(replica, `${record.reason}; it would not stop`);
  }
  const args = { replica, graceSeconds: graceLeft(facts, service, record), afterwards: record.afterwards };
  return { step: step(replica, 'stopReplica', record.reason, args) };
}

/** What an earlier activation has let pass of the grace is gone: a grace longer than an activation must end, too. */
function graceLeft(
  facts: Facts,
  service: DesiredService | undefined,
  { killAt }: { killAt: string },
): number {
  const left = Math.ceil((Date.parse(killAt) - facts.now.getTime()) / 1000);
  return left > 1 ? Math.min(left, graceSeconds(service)) : 1;
}

function stopNow(service: DesiredService | undefined, replica: Replica, reason: string): ReplicaPlan {
  const args = { replica, graceSeconds: graceSeconds(service), afterwards: 'remove' as const };
  return { step: step(replica, 'stopReplica', reason, args) };
}

function remove(replica: Replica, reason: string): ReplicaPlan {
  return { step: step(replica, 'removeReplica', reason, { replica }) };
}

function abort(
  service: DesiredService,
  replica: Replica,
  { release, attempt, why }: { release: string; attempt: number; why: string },
): ReplicaPlan {
  return { step: step(replica, 'abortReplica', why, { service, replica, why, release, attempt }) };
}

/** A step about one replica. */
export function step<Action extends Step['action']>(
  replica: Replica,
  action: Action,
  reason: string,
  args: Extract<Step, { action: Action }>['args'],
): Extract<Step, { action: Action }> {
  const key = `${replica.project}/${replica.service}`;
  return { action, key, index: replica.index, reason, args } as unknown as Extract<Step, { action: Action }>;
}

function later(instant: Date, ms: number): Date {
  return new Date(instant.getTime() + ms);
}
