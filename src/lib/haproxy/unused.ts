// Waits for a HAProxy that is to be stopped, and that nobody is sent to any more, to end what it has under way.
import { setTimeout as sleep } from 'node:timers/promises';
import { UnavailableError } from '../errors.ts';
import { sumSessions } from './parse-workers.ts';
import type { RuntimeOptions } from './runtime.ts';
import { askWorkers } from './workers.ts';

export type UnusedOptions = RuntimeOptions & {
  /** For who still comes although nobody is sent any more. */
  leastMs: number;
  /** What is under way then is cut by the stop. */
  mostMs: number;
};

const pollMs = 200;

/** Old workers count as well. Ends at once where HAProxy cannot be asked: then there is nothing to wait for. */
export async function waitUntilUnused(masterSocket: string, options: UnusedOptions): Promise<void> {
  const { leastMs, mostMs, ...ask } = options;
  const startedAt = performance.now();
  const age = (): number => performance.now() - startedAt;
  try {
    while (!ask.signal.aborted && age() < mostMs) {
      if (!(await isUsed(masterSocket, ask)) && age() >= leastMs) return;
      await sleep(pollMs, undefined, { signal: ask.signal }).catch(() => {});
    }
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
  }
}

async function isUsed(masterSocket: string, options: RuntimeOptions): Promise<boolean> {
  // Of backends alone.
  const workers = await askWorkers(masterSocket, ['show stat -1 2 -1'], options);
  return workers.some(({ answers: [stats = ''] }) => sumSessions(stats) !== 0);
}
