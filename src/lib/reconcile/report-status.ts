// What a look amounts to for others: status.json and reeve.json. Pure.
import type { ReeveDocument } from '../cluster/reeve-document.ts';
import { buildNodeStatus, buildServiceStatus } from '../cluster/status.ts';
import { type NodeStatus, type ServiceStatus, serviceKey } from '../cluster/wire.ts';
import type { Facts } from './facts.ts';
import type { Plan } from './plan.ts';
import { findLeaving } from './plan-routing.ts';

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
    return buildServiceStatus({ service, replicas, error: errors.get(key) }, facts.now);
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
  const pending = plan.services.some(({ steps, waits }) => steps.length > 0 || waits.length > 0);
  const converged = desired.kind === 'document' && troubles.length === 0 && !pending && facts.busy.size === 0;
  return {
    version: 1,
    nodeId: reporter.nodeId,
    reeve: reporter.reeveVersion,
    updatedAt: facts.now.toISOString(),
    desired: desired.kind === 'document' ? { updatedAt: desired.updatedAt } : null,
    converged,
    failing: troubles.map(({ key, message }) => {
      const [project = '', service = ''] = key.split('/');
      return { project, service, message };
    }),
    draining: findDraining(facts),
  };
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
