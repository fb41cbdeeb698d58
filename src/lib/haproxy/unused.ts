// Waits for a HAProxy that is to be stopped, and that nobody is sent to any more, to end what it has under way.
import { setTimeout as sleep } from 'node:timers/promises';
import { UnavailableError } from '../errors.ts';
import { parseBusyServers } from './parse.ts';
import type { RuntimeOptions } from './runtime.ts';
import { askWorkers } from './workers.ts';

export type UnusedOptions = RuntimeOptions & {
  /** For who still comes although nobody is sent any more. */
  leastMs: number;
  /** What is under way then is cut by the stop. */
  mostMs: number;
};

const pollMs = 100;

/** Old workers count as well. Ends at once where HAProxy cannot be asked: then there is nothing to wait for. */
export async function waitUntilUnused(masterSocket: string, options: UnusedOptions): Promise<void> {
  const { leastMs, mostMs, ...ask } = options;
  const startedAt = performance.now();
  const age = (): number => performance.now() - startedAt;
  try {
    while (!ask.signal.aborted && age() < mostMs) {
      const isUsed = await hasRequests(masterSocket, ask);
      if (!isUsed && age() >= leastMs) return;
      await sleep(pollMs, undefined, { signal: ask.signal }).catch(() => {});
    }
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
  }
}

/** Requests and tunnels alike have a connection to a server; our file keeps none. */
async function hasRequests(masterSocket: string, options: RuntimeOptions): Promise<boolean> {
  // The second one always has an answer, by which a worker is known that has ended meanwhile.
  const commands = ['show servers conn', 'show version'];
  const workers = await askWorkers(masterSocket, commands, options);
  return workers.some(({ answers: [servers = ''] }) => parseBusyServers(servers).size > 0);
}
