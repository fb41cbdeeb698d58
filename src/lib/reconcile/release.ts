// What makes two containers of a service the same release, and how long a failed one is left alone. Pure.
import { createHash } from 'node:crypto';
import { configStamp } from '../cluster/stamp.ts';
import type { DesiredService } from '../cluster/wire.ts';
import type { FailureRecord, Replica, ServiceRecord } from './facts.ts';

/**
 * Identifies image, resources and configuration of a service as desired, and how it proves itself; the key of a failure. A
 * corrected port or check is another release: it must not wait for the failure of the wrong one.
 */
export function releaseOf(service: DesiredService): string {
  const { image, cpu, memory, ingress, healthCheck } = service;
  const parts = [image, cpu, memory, configStamp(service), ingress?.port ?? null, healthCheck];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16);
}

/** Why a container has to be replaced, or undefined if it is as desired. All drifts give one reason, one rollout. */
export function describeDrift(service: DesiredService, replica: Replica): string | undefined {
  const drifts: string[] = [];
  if (replica.cronFire !== undefined || replica.jobRun !== undefined) drifts.push('it was a run');
  if (replica.image !== service.image) drifts.push(`image ${replica.image} -> ${service.image}`);
  if (replica.cpu !== service.cpu) drifts.push(`cpu ${replica.cpu} -> ${service.cpu}`);
  if (replica.memory !== service.memory) drifts.push(`memory ${replica.memory} -> ${service.memory}`);
  if (replica.configStamp !== configStamp(service)) drifts.push('configuration changed');
  const port = describePortDrift(service, replica);
  if (port !== undefined) drifts.push(port);
  return drifts.length === 0 ? undefined : drifts.join(', ');
}

/** Ports are no part of the stamp: what a container publishes is compared, where it shows it. */
function describePortDrift({ ingress }: DesiredService, replica: Replica): string | undefined {
  // Off its network it publishes nothing, and joining brings that back.
  if (replica.state !== 'running' || replica.networks.length === 0) return undefined;
  const { containerPort } = replica;
  if (containerPort === ingress?.port) return undefined;
  if (ingress === null) return `port ${containerPort} is to be reached no more`;
  return containerPort === undefined
    ? `port ${ingress.port} is to be reached`
    : `port ${containerPort} -> ${ingress.port}`;
}

const firstRetryMs = 30_000;
const longestRetryMs = 15 * 60_000;
/** A service that flaps between many releases must not grow its record without end. */
const keptFailures = 5;

/** The failure as recorded after one more attempt: 30 s, doubling, at most 15 min until the next. */
export function nextFailure(
  earlier: FailureRecord | undefined,
  failed: { now: Date; error: string; imageId?: string },
): FailureRecord {
  const attempts = (earlier?.attempts ?? 0) + 1;
  const delayMs = Math.min(firstRetryMs * 2 ** Math.min(attempts - 1, 10), longestRetryMs);
  return {
    attempts,
    lastAt: failed.now.toISOString(),
    nextTryAt: new Date(failed.now.getTime() + delayMs).toISOString(),
    error: failed.error,
    ...(failed.imageId === undefined ? {} : { imageId: failed.imageId }),
  };
}

/** The failure that keeps a release back at this instant. A `nextTryAt` far ahead of a clock set back is not believed. */
export function holdingFailure(record: ServiceRecord, release: string, now: Date): FailureRecord | undefined {
  const failure = record.failures[release];
  if (failure === undefined) return undefined;
  const waitMs = Date.parse(failure.nextTryAt) - now.getTime();
  return waitMs > 0 && waitMs <= longestRetryMs ? failure : undefined;
}

/** The newest failures only, by the time they were last seen. */
export function keepNewestFailures(failures: ServiceRecord['failures']): ServiceRecord['failures'] {
  const newest = Object.entries(failures).sort(([, a], [, b]) => (a.lastAt < b.lastAt ? 1 : -1));
  return Object.fromEntries(newest.slice(0, keptFailures));
}
