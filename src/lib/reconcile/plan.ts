// The next steps of a tick for all services, from facts alone. No desired document, no action; only a valid one can
// remove anything, and not most of a node's services without being told so.
import { type DesiredService, serviceKey } from '../cluster/wire.ts';
import { holdFor } from '../hold/holds.ts';
import { namePattern } from '../ids.ts';
import type { DesiredFacts, Facts, PlanOptions, Replica } from './facts.ts';
import { planCron, planForgotten } from './plan-cron.ts';
import { planJob } from './plan-job.ts';
import { findClaims, holderOf } from './plan-routing.ts';
import { planRemoval, planService, type ServicePlan } from './plan-service.ts';

export type Deferred = { key: string; reason: string };

export type Plan = {
  services: readonly ServicePlan[];
  /** Left alone this time, and why. */
  deferred: readonly Deferred[];
  /** Each is one service's error, told in status and by exit code 1. */
  errors: readonly { key: string; error: string }[];
};

/** A removal of this many services at once must have been announced. */
const brakeAt = 3;

export function planReconcile(facts: Facts, options: PlanOptions): Plan {
  const { desired } = facts;
  if (desired.kind === 'none') return { services: [], deferred: [], errors: [] };
  const replicas = groupByKey(facts.replicas);
  const removals = planRemovals(facts, options, replicas);
  const deferred: Deferred[] = [];
  const errors: { key: string; error: string }[] = [];
  const services: ServicePlan[] = [];
  const consider = (key: string, plan: () => ServicePlan): void => {
    if ((options.only !== undefined && options.only !== key) || facts.busy.has(key)) return;
    const hold = holdFor(facts.holds, key, facts.now);
    if (hold !== undefined && options.only !== key) deferred.push({ key, reason: `held: ${hold.reason}` });
    else services.push(plan());
  };
  for (const service of desired.services) {
    const key = serviceKey(service);
    consider(key, () => planDesired(facts, service, replicas.get(key) ?? []));
  }
  for (const key of removals.keys) consider(key, () => planRemoval(facts, key, replicas.get(key) ?? []));
  for (const forgotten of planForgotten(facts)) {
    const isTurning = services.some(({ key, steps }) => key === forgotten.key && steps.length > 0);
    if (!isTurning) consider(forgotten.key, () => forgotten);
  }
  const { only } = options;
  if (only !== undefined && !isKnown(desired, only) && !replicas.has(only)) {
    errors.push({ key: only, error: 'no such service is desired or runs here' });
  }
  const rejected = desired.rejected.map(({ key, reason }) => ({ key: key ?? '(unnamed)', error: reason }));
  const unrouted = findUnrouted(facts, options);
  return { services, deferred, errors: [...errors, ...unrouted, ...rejected, ...removals.errors] };
}

/** A one-off run goes before a schedule: it is what a person asked for. */
function planDesired(facts: Facts, service: DesiredService, replicas: readonly Replica[]): ServicePlan {
  if (service.jobRun !== undefined) return planJob(facts, service, service.jobRun, replicas);
  if (service.cron !== undefined) return planCron(facts, service, replicas);
  return planService(facts, service, replicas);
}

/** Each runs all the same, and everything else is routed. */
function findUnrouted(facts: Facts, { only }: PlanOptions): { key: string; error: string }[] {
  if (facts.desired.kind === 'none') return [];
  const claims = findClaims(facts);
  return facts.desired.services.flatMap((service) => {
    const { ingress } = service;
    const key = serviceKey(service);
    if (ingress === null || (only !== undefined && only !== key)) return [];
    const holder = holderOf(claims, ingress);
    if (holder === key) return [];
    return [{ key, error: `cannot route it: domain "${ingress.domain}" is claimed by ${holder} too` }];
  });
}

function isKnown(desired: DesiredFacts & { kind: 'document' }, key: string): boolean {
  const isIt = (known: string | undefined): boolean => known === key;
  return desired.services.map(serviceKey).some(isIt) || desired.rejected.some((entry) => isIt(entry.key));
}

function groupByKey(replicas: readonly Replica[]): Map<string, Replica[]> {
  const groups = new Map<string, Replica[]>();
  for (const replica of [...replicas].sort((a, b) => a.index - b.index)) {
    const key = serviceKey(replica);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [replica]);
    else group.push(replica);
  }
  return groups;
}

function planRemovals(
  facts: Facts,
  options: PlanOptions,
  replicas: ReadonlyMap<string, readonly Replica[]>,
): { keys: string[]; errors: { key: string; error: string }[] } {
  if (facts.desired.kind === 'none') return { keys: [], errors: [] };
  const { services, rejected } = facts.desired;
  // A service whose name cannot be told may be any of those that run.
  if (rejected.some(({ key }) => key === undefined)) return { keys: [], errors: [] };
  const wanted = new Set([...services.map(serviceKey), ...rejected.map(({ key }) => key)]);
  const misnamed = new Set(rejected.flatMap(({ key = '' }) => (isServiceKey(key) ? [] : [projectOf(key)])));
  const undesired = [...replicas.keys()]
    .filter((key) => !wanted.has(key) && !misnamed.has(projectOf(key)))
    .sort();
  if (options.allowRemoval) return { keys: undesired, errors: [] };
  const announced = new Set(facts.announcedRemovals);
  const sudden = undesired.filter((key) => !announced.has(key) && !isLeaving(facts, key, replicas));
  const running = [...replicas.values()].filter((group) => group.some(({ state }) => state === 'running'));
  if (sudden.length < brakeAt || sudden.length * 2 <= running.length) return { keys: undesired, errors: [] };
  const error =
    `desired state drops ${sudden.length} of ${running.length} running services without an announcement by deploy: ` +
    'kept; if that is meant, run `reeve reconcile --allow-removal`';
  return {
    keys: undesired.filter((key) => !sudden.includes(key)),
    errors: sudden.map((key) => ({ key, error })),
  };
}

/** An illegal name may be a slip in that of any service of its project, so none of them is taken for undesired. */
function isServiceKey(key: string): boolean {
  return key.split('/').every((name) => namePattern.test(name)) && key.split('/').length === 2;
}

function projectOf(key: string): string {
  return key.split('/', 1)[0] as string;
}

/** All its containers are on their way out already: the removal was let through by an earlier look. */
function isLeaving(facts: Facts, key: string, replicas: ReadonlyMap<string, readonly Replica[]>): boolean {
  const records = facts.record.services[key]?.replicas ?? {};
  return (replicas.get(key) ?? []).every(({ name }) => {
    const phase = records[name]?.phase;
    return phase === 'draining' || phase === 'stopping';
  });
}
