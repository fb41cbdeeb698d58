// Lets a HAProxy in master-worker mode read its file anew, and sees it through: the master takes the order before it knows
// whether the file can be used.
import { setTimeout as sleep } from 'node:timers/promises';
import { StepError, UnavailableError } from '../errors.ts';
import { formatDuration } from '../time.ts';
import { parseDescription, parseFailedReloads } from './parse.ts';
import { askMaster, askRuntime, type RuntimeOptions } from './runtime.ts';

export type ReloadOptions = RuntimeOptions & {
  /** Of a worker. */
  runtimeSocket: string;
  /** `description` of the file that is to be read: by it the new worker is known, so it must differ from the old one's. */
  description: string;
  /** How long a new worker may take. */
  deadlineMs?: number;
};

const defaultDeadlineMs = 30_000;
const pollMs = 20;

/** Throws StepError if no worker comes up with the file; the old one then goes on. */
export async function reloadWorkers(masterSocket: string, options: ReloadOptions): Promise<void> {
  const { signal, service, deadlineMs = defaultDeadlineMs } = options;
  const failedBefore = await readFailedReloads(masterSocket, options);
  // Before 2.7 it answers nothing and at once; since then with the result and what the new worker said.
  const answer = await askMaster(masterSocket, 'reload', { timeoutMs: deadlineMs, ...options });
  if (answer.startsWith('Success=0')) throw failure(service, reasonIn(answer));
  const until = performance.now() + deadlineMs;
  while (performance.now() < until) {
    if ((await whileAway(readDescription(options))) === options.description) return;
    const failed = await whileAway(readFailedReloads(masterSocket, options));
    if (failed !== undefined && failed > failedBefore) {
      throw failure(service, `it could not use its configuration (journalctl -u ${service} tells why)`);
    }
    await sleep(pollMs, undefined, { signal }).catch(() => {});
  }
  throw failure(
    service,
    `no worker with the new configuration has answered within ${formatDuration(deadlineMs)}`,
  );
}

async function readDescription({ runtimeSocket, ...options }: ReloadOptions): Promise<string | undefined> {
  const [info = ''] = await askRuntime(runtimeSocket, ['show info'], options);
  return parseDescription(info);
}

async function readFailedReloads(masterSocket: string, options: RuntimeOptions): Promise<number> {
  return parseFailedReloads(await askMaster(masterSocket, 'show proc', options));
}

/** Master and workers are away for moments in which they start themselves anew. */
async function whileAway<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof UnavailableError && error.code !== 'interrupted') return undefined;
    throw error;
  }
}

function failure(service: string, cause: string): StepError {
  return new StepError(`cannot reload ${service}: ${cause}`);
}

function reasonIn(answer: string): string {
  const lines = answer.split('\n').filter((line) => !line.startsWith('Success=') && line !== '--');
  return lines.find((line) => line.includes('[ALERT]')) ?? lines[0] ?? 'it could not use its configuration';
}
