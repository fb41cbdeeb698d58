// Commands to every worker of a HAProxy in master-worker mode, over the master's socket: also to those that a reload has
// left behind with their tunnels, which the runtime socket does not lead to any more.
import { setTimeout as sleep } from 'node:timers/promises';
import { systemErrorCode, UnavailableError } from '../errors.ts';
import { parseWorkers, type Worker } from './parse-workers.ts';
import { askMaster, askWorker, type RuntimeOptions } from './runtime.ts';

export type WorkerAnswers = Worker & { answers: string[] };

/** While it reloads, the master starts itself anew, and nobody listens meanwhile. */
const awayMs = 5_000;
const pollMs = 20;

/**
 * Asks each worker, the current one first. What stood in a file before the call is known to every worker that is not asked:
 * a reload that it does not see yet reads the file later. Throws UnavailableError, with the code `not-running` where there
 * is no socket at all, which the unit removes when HAProxy has ended.
 */
export async function askWorkers(
  masterSocket: string,
  commandsFor: readonly string[] | ((worker: Worker) => readonly string[]),
  options: RuntimeOptions,
): Promise<WorkerAnswers[]> {
  const asked = new Map<number, WorkerAnswers>();
  const find = typeof commandsFor === 'function' ? commandsFor : () => commandsFor;
  for (const until = performance.now() + awayMs; ; ) {
    try {
      const workers = await listWorkers(masterSocket, options);
      await askEach(masterSocket, { workers, asked, find }, options);
      // One that has ended meanwhile has another in its place, or was an old one: the next list tells.
      if (workers.every(({ pid }) => asked.has(pid)))
        return workers.flatMap(({ pid }) => asked.get(pid) ?? []);
    } catch (error) {
      if (!isAway(error) || performance.now() > until) throw error;
    }
    await sleep(pollMs, undefined, { signal: options.signal }).catch(() => {});
  }
}

type Round = {
  workers: readonly Worker[];
  asked: Map<number, WorkerAnswers>;
  find: (worker: Worker) => readonly string[];
};

async function askEach(
  masterSocket: string,
  { workers, asked, find }: Round,
  options: RuntimeOptions,
): Promise<void> {
  for (const worker of workers) {
    if (asked.has(worker.pid)) continue;
    const answers = await askWorker(masterSocket, worker.pid, find(worker), options);
    if (answers !== undefined) asked.set(worker.pid, { ...worker, answers });
  }
}

async function listWorkers(masterSocket: string, options: RuntimeOptions): Promise<Worker[]> {
  const workers = parseWorkers(await askMaster(masterSocket, 'show proc', options));
  if (workers.length > 0) return workers;
  throw new UnavailableError(`cannot ask HAProxy on ${JSON.stringify(masterSocket)}: it has no worker`, {
    code: 'cut',
  });
}

function isAway(error: unknown): boolean {
  if (!(error instanceof UnavailableError)) return false;
  const code = systemErrorCode(error.cause);
  return error.code === 'cut' || code === 'ECONNREFUSED' || code === 'ECONNRESET' || code === 'EPIPE';
}
