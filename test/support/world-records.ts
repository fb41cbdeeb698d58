// The records that the handlers leave behind, for a node in memory.
import { containerName } from '../../src/lib/cluster/names.ts';
import type { DesiredService } from '../../src/lib/cluster/wire.ts';
import type { Replica, ReplicaRecord } from '../../src/lib/reconcile/facts.ts';
import { startDeadlineMs } from '../../src/lib/reconcile/plan-replica.ts';
import type { StepOf } from '../../src/lib/reconcile/steps.ts';
import { aReplica } from './builders.ts';

/** A running container of the service as it is desired. */
export function aContainer(
  service: DesiredService,
  index: number,
  overrides: Pick<Replica, 'containerId' | 'createdAt'> & Partial<Replica>,
): Replica {
  return {
    ...aReplica(service, { index }),
    name: containerName({ ...service, index }),
    state: 'running',
    statusText: 'Up 1 second',
    hostPort: service.ingress === null ? undefined : 20_000 + index,
    containerPort: service.ingress?.port,
    networks: [`launchpadnet_${service.project}`],
    ...overrides,
  };
}

export function startingRecord(
  { service, release, attempt }: Pick<StepOf<'startReplica'>['args'], 'service' | 'release' | 'attempt'>,
  now: Date,
): ReplicaRecord {
  const deadline = laterText(now, startDeadlineMs(service));
  return { phase: 'starting', since: now.toISOString(), deadline, release, attempt };
}

export function drainRecord(reason: string, drainMs: number | null, now: Date): ReplicaRecord {
  const drainUntil = drainMs === null ? null : laterText(now, drainMs);
  return { phase: 'draining', since: now.toISOString(), drainUntil, reason };
}

export function acknowledgedRecord(
  record: ReplicaRecord | undefined,
  drainMs: number,
  now: Date,
): ReplicaRecord {
  if (record?.phase !== 'draining' || record.drainUntil === null) throw new Error('it does not drain');
  const drainUntil = [record.drainUntil, laterText(now, drainMs)].sort()[0] as string;
  return { ...record, drainUntil, acknowledgedAt: now.toISOString() };
}

export function stoppingRecord(args: StepOf<'stopReplica'>['args'], now: Date): ReplicaRecord {
  const { afterwards, graceSeconds } = args;
  const killAt = laterText(now, graceSeconds * 1000);
  return { phase: 'stopping', since: now.toISOString(), killAt, afterwards, reason: 'x' };
}

function laterText(now: Date, ms: number): string {
  return new Date(now.getTime() + ms).toISOString();
}
