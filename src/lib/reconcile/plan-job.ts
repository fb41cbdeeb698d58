// What comes next for a one-off run: its container is its record, so that an id runs once for as long as that is kept. Pure.
import { type DesiredService, serviceKey } from '../cluster/wire.ts';
import { emptyServiceRecord, type Facts, type Replica } from './facts.ts';
import { isActive } from './plan-cron.ts';
import { planNetworks, planRemoval, type ServicePlan } from './plan-service.ts';
import { holdingFailure, releaseOf } from './release.ts';
import type { Step } from './steps.ts';

export function planJob(
  facts: Facts,
  service: DesiredService,
  jobRun: NonNullable<DesiredService['jobRun']>,
  replicas: readonly Replica[],
): ServicePlan {
  const key = serviceKey(service);
  const leaving = planRemoval(facts, key, replicas.filter(isReplica), 'it is no one-off run');
  if (leaving.steps.length > 0 || leaving.waits.length > 0) return leaving;
  const runs = replicas.filter((replica) => !isReplica(replica));
  const steps: Step[] = planNetworks(facts, runs);
  const own = runs.find((run) => run.jobRun === jobRun.id);
  // Made and not started is what a crash leaves; once started, it is never started again.
  const isOver = own !== undefined && own.state !== 'created';
  if (isOver || runs.some(isActive)) return { key, steps, waits: [] };
  const held = holdingFailure(
    facts.record.services[key] ?? emptyServiceRecord,
    releaseOf(service),
    facts.now,
  );
  if (held !== undefined) return { key, steps, waits: [], problem: held.error, retryAt: held.nextTryAt };
  const reason = `run ${jobRun.id} was requested at ${jobRun.requestedAt}`;
  const previous = runs.filter((run) => run !== own);
  const args = { service, own, previous };
  steps.push({ action: 'startJob', key, index: 0, reason, args });
  return { key, steps, waits: [], headline: { action: 'run', reason } };
}

/** Of an earlier life of the service, as one that runs on. */
function isReplica({ cronFire, jobRun }: Replica): boolean {
  return cronFire === undefined && jobRun === undefined;
}
