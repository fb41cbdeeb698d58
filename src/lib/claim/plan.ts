// What is to be done about the jobs of this node before the first claim. Pure.
import { replayWindowMs } from '../ploy/names.ts';
import type { ClaimFacts, JobContainer, OpenJob } from './facts.ts';
import { type ClaimStep, waitsForServer } from './steps.ts';

const runningStates: readonly string[] = ['running', 'paused', 'restarting'];
const endedStates: readonly string[] = ['exited', 'dead'];

/**
 * Containers by their ids, then jobs by their keys: the order is that of the original. What waits for the server comes last, ends
 * that an earlier process could not tell before the others, so that nothing that runs is left alone meanwhile.
 */
export function planClaim(facts: ClaimFacts, now: Date): ClaimStep[] {
  const containers = [...facts.containers].sort((a, b) => (a.id < b.id ? -1 : 1));
  const open = [...facts.open].sort((a, b) => (a.key < b.key ? -1 : 1));
  const known = new Map(open.map((job) => [job.key, job]));
  const steps = [
    ...open.filter(isDeliverable).map(planDelivery),
    ...planContainers(containers, { known, ended: facts.ended, now }),
    ...open.flatMap((job) => planJob(job, containers)),
  ];
  return [...steps.filter((step) => !waitsForServer(step)), ...steps.filter(waitsForServer)];
}

function isDeliverable(job: OpenJob): boolean {
  return (
    !job.isHeld && job.trouble === undefined && job.claim === 'whole' && job.completion === 'undelivered'
  );
}

function planDelivery({ key }: OpenJob): ClaimStep {
  return { kind: 'deliver', key, reason: 'its end is on disk and not with the server' };
}

type Known = { known: ReadonlyMap<string, OpenJob>; ended: ReadonlySet<string>; now: Date };

function planContainers(containers: readonly JobContainer[], about: Known): ClaimStep[] {
  const taken = new Set<string>();
  const running = new Set(
    containers.filter(({ state }) => runningStates.includes(state)).map(({ key }) => key),
  );
  return containers.flatMap((container) => {
    const { key } = container;
    if (about.known.has(key)) return [];
    if (about.ended.has(key)) return [planLeftOver(container)];
    // Two containers of one job: the one that runs is the job, of several the first.
    const isSecond = taken.has(key) || (running.has(key) && !runningStates.includes(container.state));
    if (isSecond) return [];
    const steps = planForeign(container, about.now);
    if (steps.some(({ kind }) => kind !== 'trouble')) taken.add(key);
    return steps;
  });
}

function planLeftOver(container: JobContainer): ClaimStep {
  return { kind: 'remove', container, reason: 'its job has ended' };
}

/** Of no job on record: a container that the original has left. */
function planForeign(container: JobContainer, now: Date): ClaimStep[] {
  const { trouble, state, end } = container;
  if (trouble !== undefined) {
    return [{ kind: 'trouble', about: `container ${container.id}`, container, reason: trouble }];
  }
  if (runningStates.includes(state))
    return [{ kind: 'adopt', container, reason: 'it runs, and is not known' }];
  const finishedAt = end?.finishedAt?.getTime();
  if (!endedStates.includes(state) || finishedAt === undefined) return [];
  // An end in the future is a clock that went back: then it has just ended.
  if (finishedAt < now.getTime() - replayWindowMs) return [];
  return [{ kind: 'complete', container, reason: 'it ended while nobody looked' }];
}

function planJob(job: OpenJob, containers: readonly JobContainer[]): ClaimStep[] {
  const { key, isHeld } = job;
  if (isHeld) return [];
  if (job.trouble !== undefined) return [{ kind: 'trouble', about: `job ${key}`, reason: job.trouble }];
  if (job.claim === 'whole') {
    if (job.completion === 'undelivered') return [];
    return [{ kind: 'start', key, reason: 'it is open, and nobody has it' }];
  }
  const container = containers.find((one) => one.key === key && one.trouble === undefined);
  if (container === undefined) return [{ kind: 'give-up', key, reason: 'its claim is lost' }];
  return [
    { kind: 'restore', key, container, reason: 'its claim is lost, and its container has the ids' },
    { kind: 'start', key, reason: 'its claim has been restored' },
  ];
}
