// What a look amounts to for others: status.json and reeve.json. Pure.
import { backupStatusOf } from '../backup/report.ts';
import type { ReeveDocument } from '../cluster/reeve-document.ts';
import { buildNodeStatus, buildServiceStatus } from '../cluster/status.ts';
import { type NodeStatus, type ServiceStatus, serviceKey } from '../cluster/wire.ts';
import type { Facts } from './facts.ts';
import type { Plan } from './plan.ts';
import { cronStatusOf } from './plan-cron.ts';
import { findLeaving } from './plan-routing.ts';
import { keepsSchedule } from './steps.ts';

export type Trouble = {
  key: string;
  message: string;
  /** When it is tried again by itself, where it is held back until then. */
  retryAt?: string;
};

export type LookReport = { status: NodeStatus; reeve: ReeveDocument };

export type Reporter = {
  nodeId: string;
  agentId: string;
  agentVersion: string;
  reeveVersion: string;
};

/** Every service that is not as desired and is not merely on its way, with why. */
export function troublesOf(plan: Plan, faults: ReadonlyMap<string, { error: string }>): Trouble[] {
  const troubles = new Map<string, Omit<Trouble, 'key'>>();
  for (const { key, reason } of plan.deferred) troubles.set(key, { message: reason });
  for (const { key, problem, retryAt } of plan.services)
    if (problem !== undefined) troubles.set(key, { message: problem, ...(retryAt && { retryAt }) });
  for (const [key, { error }] of faults) if (!troubles.has(key)) troubles.set(key, { message: error });
  for (const { key, error } of plan.errors) troubles.set(key, { message: error });
  return [...troubles].map(([key, trouble]) => ({ key, ...trouble }));
}

export function reportLook(
  facts: Facts,
  plan: Plan,
  troubles: readonly Trouble[],
  reporter: Reporter,
): LookReport {
  const held = new Set(plan.deferred.map(({ key }) => key));
  const errors = new Map(
    troubles.filter(({ key }) => !held.has(key)).map(({ key, message }) => [key, message]),
  );
  const { nodeId, agentId, agentVersion } = reporter;
  const services = serviceStatuses(facts, errors);
  return {
    status: buildNodeStatus({ nodeId, agentId, agentVersion, services }, facts.now),
    reeve: buildReeveDocument(facts, plan, troubles, reporter),
  };
}

function serviceStatuses(facts: Facts, errors: ReadonlyMap<string, string>): ServiceStatus[] {
  if (facts.desired.kind === 'none') return [];
  const known = facts.desired.services.map((service) => {
    const key = serviceKey(service);
    const replicas = facts.replicas.filter((replica) => serviceKey(replica) === key);
    const told = replicas.map((replica) => ({
      ...replica,
      finishedAt: facts.finishedAt.get(replica.containerId),
    }));
    const cron = cronStatusOf(facts, service, replicas);
    const backup = backupStatusOf(facts.backups, service, facts.now);
    return buildServiceStatus({ service, replicas: told, error: errors.get(key), cron, backup }, facts.now);
  });
  // By key: one that is refused for being there twice has one status all the same.
  const rejected = new Map(
    facts.desired.rejected.flatMap(({ key, reason }) =>
      key === undefined ? [] : [[key, rejectedStatus(facts, key, reason)]],
    ),
  );
  return [...known, ...rejected.values()];
}

function rejectedStatus(facts: Facts, key: string, reason: string): ServiceStatus {
  const [project = '', service = ''] = key.split('/');
  const running = facts.replicas.filter(
    (replica) => serviceKey(replica) === key && replica.state === 'running',
  );
  return {
    project,
    service,
    image: running[0]?.image ?? '',
    state: 'error',
    message: reason,
    containerId: running[0]?.containerId ?? null,
    desiredReplicas: 0,
    runningReplicas: running.length,
    replicas: [],
    updatedAt: facts.now.toISOString(),
  };
}

function buildReeveDocument(
  facts: Facts,
  plan: Plan,
  troubles: readonly Trouble[],
  reporter: Reporter,
): ReeveDocument {
  const { desired } = facts;
  const { converged, failing } = judgeProgress(facts, plan, troubles);
  return {
    version: 1,
    nodeId: reporter.nodeId,
    reeve: reporter.reeveVersion,
    updatedAt: facts.now.toISOString(),
    desired: desired.kind === 'document' ? { updatedAt: desired.updatedAt } : null,
    converged,
    failing: failing.map(({ key, message }) => {
      const [project = '', service = ''] = key.split('/');
      return { project, service, message };
    }),
    draining: findDraining(facts),
  };
}

/** What keeps a schedule is no part of it: no deploy waits for a run, or fails because one could not be started. */
function judgeProgress(
  { desired, busy }: Facts,
  plan: Plan,
  troubles: readonly Trouble[],
): { converged: boolean; failing: readonly Trouble[] } {
  const services = desired.kind === 'none' ? [] : desired.services;
  const scheduled = new Set(
    services.filter(({ cron, jobRun }) => cron !== undefined && jobRun === undefined).map(serviceKey),
  );
  const stuck = new Set([...plan.deferred, ...plan.errors].map(({ key }) => key));
  const failing = troubles.filter(({ key }) => !scheduled.has(key) || stuck.has(key));
  const isPending = plan.services.some(
    ({ steps, waits }) => waits.length > 0 || steps.some(({ action }) => !keepsSchedule.has(action)),
  );
  const isIdle = !isPending && [...busy].every((key) => scheduled.has(key));
  return { converged: desired.kind === 'document' && isIdle && failing.length === 0, failing };
}

/** Backends that leave the routing and run on: named before they are gone from a shard. */
export function findDraining(facts: Facts): ReeveDocument['draining'] {
  const { desired, record } = facts;
  if (desired.kind === 'none') return [];
  const domains = new Map(desired.services.map((service) => [serviceKey(service), service.ingress?.domain]));
  const draining = facts.replicas.flatMap((replica) => {
    const { hostPort, name } = replica;
    const key = serviceKey(replica);
    const domain = domains.get(key);
    const isDraining = record.services[key]?.replicas[name]?.phase === 'draining';
    return isDraining && domain !== undefined && hostPort !== undefined ? [[hostPort, domain] as const] : [];
  });
  const leaving = findLeaving(facts).map(({ hostPort, domain }) => [hostPort, domain] as const);
  return [...new Map([...draining, ...leaving])].map(([hostPort, domain]) => ({ domain, hostPort }));
}
