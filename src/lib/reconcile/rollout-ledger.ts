// Changes to rollouts.json, each on disk before what it announces is done.
import { emptyServiceRecord, type ReplicaRecord, type RolloutRecord, type ServiceRecord } from './facts.ts';
import { keepNewestFailures, nextFailure } from './release.ts';
import type { Session } from './session.ts';

/** Where a replica stands; undefined: it serves, or is gone. */
export async function recordReplica(
  session: Session,
  key: string,
  name: string,
  record: ReplicaRecord | undefined,
): Promise<void> {
  await session.rollouts.update((rollouts) =>
    changeService(rollouts, key, (service) => {
      if (record === undefined && service.replicas[name] === undefined) return service;
      const { [name]: _, ...others } = service.replicas;
      return { ...service, replicas: record === undefined ? others : { ...others, [name]: record } };
    }),
  );
}

/** Remembers that a release did not come up, so that it is tried again only after a while. */
export async function recordFailure(
  session: Session,
  key: string,
  release: string,
  failed: { error: string; imageId?: string },
): Promise<void> {
  const now = session.ctx.clock.now();
  await session.rollouts.update((rollouts) =>
    changeService(rollouts, key, (service) => {
      const failure = nextFailure(service.failures[release], { now, ...failed });
      return { ...service, failures: keepNewestFailures({ ...service.failures, [release]: failure }) };
    }),
  );
}

export async function clearFailure(session: Session, key: string, release: string): Promise<void> {
  await session.rollouts.update((rollouts) =>
    changeService(rollouts, key, (service) => {
      if (service.failures[release] === undefined) return service;
      const { [release]: _, ...others } = service.failures;
      return { ...service, failures: others };
    }),
  );
}

/** A service with nothing recorded has no entry; an unchanged one leaves the whole record as it is. */
function changeService(
  rollouts: RolloutRecord,
  key: string,
  change: (service: ServiceRecord) => ServiceRecord,
): RolloutRecord {
  const before = rollouts.services[key] ?? emptyServiceRecord;
  const after = change(before);
  if (after === before) return rollouts;
  const { [key]: _, ...others } = rollouts.services;
  const empty = Object.keys(after.replicas).length === 0 && Object.keys(after.failures).length === 0;
  return { services: empty ? others : { ...others, [key]: after } };
}
