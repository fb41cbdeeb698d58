// What the server's own books say when all is over: how each job ended, what was printed of it, which claims met a process that
// was killed before it could keep their answer, and how often a fault was met.
import { terminalStatuses } from './jobs.ts';
import type { PloyJob, PloyRequest, PloyState } from './model.ts';
import type { Ploy } from './server.ts';

/** One process of `reeve claim`, from before it was started to after it was gone. */
export type ClaimLife = {
  startedAtMs: number;
  endedAtMs: number;
  /** Undefined where it ended by itself. */
  killedAtMs: number | undefined;
  /** Jobs of which the node had anything on its disk as soon as the process was gone. */
  knownAtEnd: ReadonlySet<string>;
};

export type Undelivered = { jobId: string; life: ClaimLife; request: PloyRequest };

export function isOver({ status }: PloyJob): boolean {
  return terminalStatuses.includes(status);
}

/**
 * Jobs that the server gave to a process that was killed before it had kept the answer. Each has been given once, by the last
 * request of a connection and of a process; the process was killed, and the connection broke; nothing of the job was on the disk
 * then; and no request after it ever named the job or its run.
 */
export function findUndelivered(state: PloyState, lives: readonly ClaimLife[]): Undelivered[] {
  const claims = state.requests.filter(({ route }) => route === 'claim');
  const named = listNamed(state);
  return claims.flatMap((request) => {
    const { given: jobId, connection, turn } = request;
    if (jobId === undefined || named.has(jobId)) return [];
    const life = findLife(lives, request);
    if (life?.killedAtMs === undefined || life.knownAtEnd.has(jobId)) return [];
    const isLast = claims.findLast((one) => findLife(lives, one) === life) === request;
    const isBroken = (connection.closedAtMs ?? 0) >= life.killedAtMs && turn === connection.requests;
    const isOnce = claims.filter(({ given }) => given === jobId).length === 1;
    return isLast && isBroken && isOnce ? [{ jobId, life, request }] : [];
  });
}

/** Only one process claims at a time, and the next is started after the last one is gone. */
function findLife(lives: readonly ClaimLife[], { connection }: PloyRequest): ClaimLife | undefined {
  const { openedAtMs } = connection;
  return lives.find((life) => life.startedAtMs <= openedAtMs && openedAtMs <= life.endedAtMs);
}

/** Jobs that anything but a claim was about. Here each run has one job. */
function listNamed({ jobs, requests }: PloyState): Set<string> {
  const byRun = new Map([...jobs.values()].map(({ payload }) => [payload.id, payload.job_id]));
  const named = new Set<string>();
  for (const request of requests) {
    if (request.route === 'claim') continue;
    for (const id of listIds(request)) named.add(byRun.get(id) ?? id);
  }
  return named;
}

const idsOf = new WeakMap<PloyRequest, Set<string>>();

/** Whatever looks like the id of a run or a job. Read once: there may be many requests, and many who ask. */
function listIds(request: PloyRequest): Set<string> {
  const known = idsOf.get(request);
  if (known !== undefined) return known;
  const text = `${request.path} ${JSON.stringify(request.body) ?? ''}`;
  const ids = new Set([...text.matchAll(/[0-9A-Za-z]{27}/g)].map(([id]) => id));
  idsOf.set(request, ids);
  return ids;
}

/** Those that requests about a job or its run have met, with the status that was given instead of the true one. */
export function listFaults({ requests }: PloyState, { payload }: PloyJob): string[] {
  const isAbout = (request: PloyRequest): boolean => {
    const ids = listIds(request);
    return ids.has(payload.job_id) || ids.has(payload.id);
  };
  return requests
    .filter((request) => request.fault !== undefined && isAbout(request))
    .map(({ route, fault, status }) => `${route} ${fault}${status === undefined ? '' : ` ${status}`}`);
}

/** In the order of the chunks' numbers, which may have gaps; a line that came again counts where it came first. */
export function listLines(job: PloyJob, stream: 'stdout' | 'stderr'): string[] {
  const chunks = [...job.chunks.values()].sort((a, b) => a.chunkNo - b.chunkNo);
  const frames = chunks.flatMap((chunk) => chunk.frames ?? []);
  return [...new Set(frames.filter((frame) => frame.stream === stream).map(({ line }) => line))];
}

export type FaultRow = { route: string; requests: number; faults: number; kinds: Record<string, number> };

export function tableFaults({ seen, met }: Ploy['faults']): FaultRow[] {
  return Object.entries(seen).map(([route, requests]) => {
    const kinds = Object.entries(met)
      .filter(([name]) => name.startsWith(`${route} `))
      .map(([name, times]): [string, number] => [name.slice(route.length + 1), times]);
    const faults = kinds.reduce((sum, [, times]) => sum + times, 0);
    return { route, requests, faults, kinds: Object.fromEntries(kinds) };
  });
}
