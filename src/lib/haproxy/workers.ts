// Commands to every worker of a HAProxy in master-worker mode, over the master's socket: also to those that a reload has
// left behind with their tunnels, which the runtime socket does not lead to any more.
import { setTimeout as sleep } from 'node:timers/promises';
import { systemErrorCode, UnavailableError } from '../errors.ts';
import { parseWorkers, type Worker } from './parse-workers.ts';
import { askMaster, askWorker, isLate, type RuntimeOptions } from './runtime.ts';

export type WorkerAnswers = Worker & { answers: string[] };

export type AskOptions = RuntimeOptions & {
  /** What counts by its answers: where one is lost, it throws at once, and does not ask again. */
  isOnce?: boolean;
};

/** While it reloads, the master starts itself anew, and nobody listens meanwhile. No worker takes longer to come or go. */
const awayMs = 5_000;
const pollMs = 20;

/**
 * Asks each worker, the current one first. What stood in a file before the call is known to every worker that is not asked:
 * a reload that it does not see yet reads the file later. Throws UnavailableError, with the code `not-running` where there
 * is no socket at all, which the unit removes when HAProxy has ended, and `cut` where for five seconds no further worker is found.
 */
export async function askWorkers(
  masterSocket: string,
  commandsFor: readonly string[] | Find,
  { isOnce = false, ...options }: AskOptions,
): Promise<WorkerAnswers[]> {
  const { signal, timeoutMs = awayMs } = options;
  const until = performance.now() + Math.min(awayMs, timeoutMs);
  const round: Round = { masterSocket, find: toFind(commandsFor), asked: new Map(), until };
  for (;;) {
    let away: unknown;
    try {
      const workers = await askRound(round, options);
      if (workers !== undefined) return workers;
    } catch (error) {
      if (isOnce || !isAwayFor(error, round)) throw error;
      away = error;
    }
    await sleep(pollMs, undefined, { signal }).catch(() => {});
    // What it has been waited for says more than that it was too late.
    if (away !== undefined && isLate(signal)) throw away;
  }
}

type Find = (worker: Worker) => readonly string[];

function toFind(commandsFor: readonly string[] | Find): Find {
  return typeof commandsFor === 'function' ? commandsFor : () => commandsFor;
}

type Round = {
  masterSocket: string;
  find: Find;
  asked: Map<number, WorkerAnswers>;
  /** Nobody is waited for any longer. */
  until: number;
};

/** Undefined where one has ended meanwhile: another is in its place, or it was an old one, and the next list tells. */
async function askRound(round: Round, options: RuntimeOptions): Promise<WorkerAnswers[] | undefined> {
  const { masterSocket, find, asked } = round;
  const workers = await listWorkers(masterSocket, options);
  for (const worker of workers) {
    if (asked.has(worker.pid)) continue;
    const answers = await askWorker(masterSocket, worker.pid, find(worker), options);
    if (answers === undefined) continue;
    asked.set(worker.pid, { ...worker, answers });
    round.until = performance.now() + awayMs;
  }
  const missing = workers.find(({ pid }) => !asked.has(pid));
  if (missing === undefined) return workers.flatMap(({ pid }) => asked.get(pid) ?? []);
  if (performance.now() > round.until) throw lost(masterSocket, missing);
  return undefined;
}

async function listWorkers(masterSocket: string, options: RuntimeOptions): Promise<Worker[]> {
  const workers = parseWorkers(await askMaster(masterSocket, 'show proc', options));
  if (workers.length > 0) return workers;
  throw cut(masterSocket, 'it has no worker');
}

function lost(masterSocket: string, { pid }: Worker): UnavailableError {
  return cut(masterSocket, `its master lists worker ${pid}, and does not find it`);
}

function cut(masterSocket: string, cause: string): UnavailableError {
  return new UnavailableError(`cannot ask HAProxy on ${JSON.stringify(masterSocket)}: ${cause}`, {
    code: 'cut',
  });
}

function isAwayFor(error: unknown, { until }: Round): boolean {
  return isAway(error) && performance.now() <= until;
}

function isAway(error: unknown): boolean {
  if (!(error instanceof UnavailableError)) return false;
  const code = systemErrorCode(error.cause);
  return error.code === 'cut' || code === 'ECONNREFUSED' || code === 'ECONNRESET' || code === 'EPIPE';
}
