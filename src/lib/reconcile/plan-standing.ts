// A service's containers sorted by what they are to the desired release, and the steps every planner builds from. Pure.
import type { DesiredService } from '../cluster/wire.ts';
import type { Replica, ServiceRecord } from './facts.ts';
import { graceSeconds, step } from './plan-replica.ts';
import { describeDrift, releaseOf } from './release.ts';
import type { Step } from './steps.ts';

export type Standing = {
  service: DesiredService;
  release: string;
  record: ServiceRecord;
  /** Of the desired release, serving or ought to. */
  current: readonly Replica[];
  /** Of the desired release, not yet proven. */
  starting: readonly Replica[];
  /** Of another release, still serving or stopped by somebody else. */
  old: readonly Replica[];
  /** Of another release, stopped by us for the time of an attempt. */
  parked: readonly Replica[];
  /** On their way out. */
  leaving: readonly Replica[];
  drift: string | undefined;
};

export function standingOf(
  service: DesiredService,
  record: ServiceRecord,
  replicas: readonly Replica[],
): Standing {
  const groups = {
    current: [] as Replica[],
    starting: [] as Replica[],
    old: [] as Replica[],
    parked: [] as Replica[],
    leaving: [] as Replica[],
  };
  const release = releaseOf(service);
  for (const replica of replicas) groups[groupOf(service, record, replica)].push(replica);
  const drifted = groups.old[0] ?? groups.parked[0];
  const drift = drifted === undefined ? undefined : describeDrift(service, drifted);
  return { service, release, record, ...groups, drift };
}

function groupOf(
  service: DesiredService,
  record: ServiceRecord,
  replica: Replica,
): 'current' | 'starting' | 'old' | 'parked' | 'leaving' {
  const own = record.replicas[replica.name];
  if (own === undefined) return describeDrift(service, replica) === undefined ? 'current' : 'old';
  if (own.phase === 'starting') return 'starting';
  return own.phase === 'stopping' && own.afterwards === 'keep' ? 'parked' : 'leaving';
}

/** Takes a container away in the gentlest way its state allows. */
export function leaveStep(replica: Replica, service: DesiredService | undefined, reason: string): Step {
  if (replica.state !== 'running') return step(replica, 'removeReplica', reason, { replica });
  if (replica.hostPort !== undefined) return step(replica, 'drainReplica', reason, { replica });
  const args = { replica, graceSeconds: graceSeconds(service), afterwards: 'remove' as const };
  return step(replica, 'stopReplica', reason, args);
}

export function createStep(standing: Standing, index: number, reason: string): Step {
  const { service, release } = standing;
  const attempt = (standing.record.failures[release]?.attempts ?? 0) + 1;
  const key = `${service.project}/${service.service}`;
  return { action: 'createReplica', key, index, reason, args: { service, index, release, attempt } };
}

/** Above every index in use: an attempt never takes the name of what it replaces. */
export function nextIndex(standing: Standing): number {
  return Math.max(-1, ...allOf(standing).map((replica) => replica.index)) + 1;
}

export function restartStep(standing: Standing, replica: Replica): Step {
  const { service, release } = standing;
  const attempt = (standing.record.failures[release]?.attempts ?? 0) + 1;
  const args = { service, replica, release, attempt };
  return step(replica, 'startReplica', `it is stopped: ${replica.statusText}`, args);
}

export function allOf(standing: Standing): Replica[] {
  const { current, starting, old, parked, leaving } = standing;
  return [...current, ...starting, ...old, ...parked, ...leaving];
}
