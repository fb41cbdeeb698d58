// A database's container is replaced stop-first: two engines on one volume corrupt it. The old container is only
// stopped, not removed, until the new one has proven itself, so that a failed attempt puts it back. Pure.
import type { Replica } from './facts.ts';
import { graceSeconds, step } from './plan-replica.ts';
import { createStep, leaveStep, nextIndex, restartStep, type Standing } from './plan-standing.ts';
import type { Step } from './steps.ts';

export function planDatabase(
  standing: Standing,
  heldBack: string | undefined,
): { steps: Step[]; problem?: string } {
  if (standing.current.length > 0) return { steps: planSettled(standing) };
  if (standing.starting.length > 0) return { steps: [] };
  if (heldBack !== undefined) return { steps: planRestore(standing), problem: heldBack };
  return { steps: planReplacement(standing) };
}

/** One container of the desired release is enough; every other one goes, without two ever running. */
function planSettled(standing: Standing): Step[] {
  const { service, current, old, parked } = standing;
  const [first, ...surplus] = [...current].sort((a, b) => a.index - b.index);
  const others = [...surplus, ...old, ...parked].map((replica) =>
    leaveStep(replica, service, 'another container has its place'),
  );
  if (first === undefined || others.length > 0) return others;
  return ['created', 'exited', 'dead'].includes(first.state) ? [restartStep(standing, first)] : [];
}

/** The attempt has failed: what served last serves again, and nothing else beside it. */
function planRestore(standing: Standing): Step[] {
  const { service, old, parked, leaving } = standing;
  const obsolete = 'another container has its place';
  if (old.some(isAlive)) return parked.map((replica) => leaveStep(replica, service, obsolete));
  if (leaving.some(isAlive)) return [];
  const [latest] = [...parked, ...old].sort((a, b) => b.index - a.index);
  if (latest === undefined) return [];
  return [step(latest, 'resumeReplica', 'the attempt to replace it failed', { replica: latest })];
}

function planReplacement(standing: Standing): Step[] {
  const { service, old, parked, leaving } = standing;
  const running = old.filter(isAlive);
  const reason = standing.drift ?? 'it is desired';
  if (running.length > 0) {
    const before = parked.map((replica) => leaveStep(replica, service, 'another container has its place'));
    return [...before, ...planStopFirst(standing, running, reason)];
  }
  if (leaving.some(isAlive)) return [];
  return [createStep(standing, nextIndex(standing), reason)];
}

function isAlive({ state }: Replica): boolean {
  return state === 'running' || state === 'restarting' || state === 'paused';
}

function planStopFirst(standing: Standing, running: Standing['old'], reason: string): Step[] {
  const { service } = standing;
  const key = `${service.project}/${service.service}`;
  const prepare: Step = { action: 'prepareImage', key, reason, args: { service } };
  const stops = running.map((replica) =>
    step(replica, 'stopReplica', `${reason} (stop-first: two engines on one volume would corrupt it)`, {
      replica,
      graceSeconds: graceSeconds(service),
      afterwards: 'keep',
    }),
  );
  return [prepare, ...stops];
}
