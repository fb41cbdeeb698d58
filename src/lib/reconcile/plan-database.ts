// A database's container is replaced stop-first: two engines on one volume corrupt it. The old container is only
// stopped, not removed, until the new one has proven itself, so that a failed attempt puts it back. Pure.
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

/** The attempt has failed: what served before it serves again. */
function planRestore(standing: Standing): Step[] {
  return standing.parked.map((replica) =>
    step(replica, 'resumeReplica', 'the attempt to replace it failed', { replica }),
  );
}

function planReplacement(standing: Standing): Step[] {
  const { old, leaving } = standing;
  const running = old.filter((replica) => replica.state === 'running' || replica.state === 'restarting');
  const reason = standing.drift ?? 'it is desired';
  if (running.length > 0) return planStopFirst(standing, running, reason);
  if (leaving.some((replica) => replica.state === 'running')) return [];
  return [createStep(standing, nextIndex(standing), reason)];
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
