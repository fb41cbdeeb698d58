// How long what a plan announces will take, as far as it can be known: start, health and drain times. Pure.
import { serviceKey } from '../cluster/wire.ts';
import type { Facts } from './facts.ts';
import { drainMs, graceSeconds } from './plan-replica.ts';

/** A container is made and started in about this time, its image being here. */
const createMs = 1000;
/** A container that heeds its stop signal takes about this long. */
const usualStopMs = 1000;

export function forecastMs(facts: Facts, key: string, action: string): number {
  if (facts.desired.kind === 'none') return 0;
  const service = facts.desired.services.find((candidate) => serviceKey(candidate) === key);
  const replicas = facts.replicas.filter((replica) => serviceKey(replica) === key);
  const leaveMs = Math.min(usualStopMs, graceSeconds(service) * 1000);
  const drains = replicas.some((replica) => replica.hostPort !== undefined);
  const outMs = (drains ? drainMs(facts, service) : 0) + leaveMs;
  if (service === undefined) return outMs;
  const check = service.healthCheck;
  const provenMs =
    check === null || service.ingress === null ? 3000 : check.intervalMs * (check.healthyThreshold - 1);
  const inMs = createMs + provenMs;
  switch (action) {
    case 'rollout': {
      const rounds = Math.ceil(service.replicas / service.rollout.maxSurge);
      return rounds * (inMs + outMs);
    }
    case 'scale down':
      return outMs;
    default:
      return inMs + (action.startsWith('stop-first') ? leaveMs : 0);
  }
}
