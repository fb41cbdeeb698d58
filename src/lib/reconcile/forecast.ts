// How long what a plan announces will take, as far as it can be known: start, health and drain times. Pure.
import { serviceKey } from '../cluster/wire.ts';
import type { Facts } from './facts.ts';
import { drainMs, drainTimeoutMs, graceSeconds } from './plan-replica.ts';

/** A container is made and started in about this time, its image being here. */
const createMs = 1000;
/** A container that heeds its stop signal takes about this long. */
const usualStopMs = 1000;

/** `isLongest`: an edge that acknowledges its drains ends it sooner. */
export type Forecast = { ms: number; isLongest: boolean };

export function forecast(facts: Facts, key: string, action: string): Forecast {
  if (facts.desired.kind === 'none') return { ms: 0, isLongest: false };
  const service = facts.desired.services.find((candidate) => serviceKey(candidate) === key);
  const replicas = facts.replicas.filter((replica) => serviceKey(replica) === key);
  const leaveMs = Math.min(usualStopMs, graceSeconds(service) * 1000);
  const drains = replicas.some((replica) => replica.hostPort !== undefined);
  const outMs = (drains ? drainMs(facts, service) : 0) + leaveMs;
  const isLongest = drains && drainMs(facts, service) > drainTimeoutMs(service);
  if (service === undefined) return { ms: outMs, isLongest };
  const check = service.healthCheck;
  const provenMs =
    check === null || service.ingress === null ? 3000 : check.intervalMs * (check.healthyThreshold - 1);
  const inMs = createMs + provenMs;
  switch (action) {
    case 'run':
      return { ms: createMs, isLongest: false };
    case 'arm':
    case 'skip':
      return { ms: 0, isLongest: false };
    case 'remove':
      return { ms: outMs, isLongest };
    case 'rollout': {
      const rounds = Math.ceil(service.replicas / service.rollout.maxSurge);
      return { ms: rounds * (inMs + outMs), isLongest };
    }
    case 'scale down':
      return { ms: outMs, isLongest };
    default:
      return { ms: inMs + (action.startsWith('stop-first') ? leaveMs : 0), isLongest: false };
  }
}
