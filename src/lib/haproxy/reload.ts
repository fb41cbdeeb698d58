// Lets a HAProxy in master-worker mode read its file anew, and sees it through: the master takes the order before it knows
// whether the file can be used.
import { setTimeout as sleep } from 'node:timers/promises';
import { StepError, UnavailableError } from '../errors.ts';
import { formatDuration } from '../time.ts';
import { parseDescription, parseReloads, type Reloads } from './parse.ts';
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
/** The master starts itself anew once a worker is up, and an order that meets it just then is lost. */
const againMs = 2_000;

/** Throws StepError if no worker comes up with the file; the old one then goes on. */
export async function reloadWorkers(masterSocket: string, options: ReloadOptions): Promise<void> {
  const { signal, service, deadlineMs = defaultDeadlineMs } = options;
  const until = performance.now() + deadlineMs;
  const order: Order = { before: undefined, givenAt: Number.NEGATIVE_INFINITY };
  while (performance.now() < until) {
    if ((await whileAway(readDescription(options))) === options.description) return;
    const reloads = await whileAway(readReloads(masterSocket, options));
    if (reloads !== undefined) await followOrder(masterSocket, order, reloads, options);
    await sleep(pollMs, undefined, { signal }).catch(() => {});
  }
  // Where the master never answered, it says why.
  if (order.before === undefined) await readReloads(masterSocket, options);
  const cause = `no worker with the new configuration has answered within ${formatDuration(deadlineMs)}`;
  throw failure(service, cause);
}

type Order = { before: Reloads | undefined; givenAt: number };

/** Gives the order, and once more where the master shows no sign of it. */
async function followOrder(
  masterSocket: string,
  order: Order,
  reloads: Reloads,
  options: ReloadOptions,
): Promise<void> {
  order.before ??= reloads;
  if (reloads.failed > order.before.failed) throw failure(options.service, unusable(options.service));
  if (reloads.count !== order.before.count || performance.now() - order.givenAt < againMs) return;
  order.givenAt = performance.now();
  await whileAway(giveOrder(masterSocket, options));
}

/** Before 2.7 it answers at once and nothing; since then once it is done, with the result and what the new worker said. */
async function giveOrder(masterSocket: string, options: ReloadOptions): Promise<void> {
  const { service, deadlineMs = defaultDeadlineMs } = options;
  const answer = await askMaster(masterSocket, 'reload', { ...options, timeoutMs: deadlineMs });
  if (!answer.startsWith('Success=0')) return;
  const alert = answer.split('\n').find((line) => line.includes('[ALERT]'));
  throw failure(service, alert ?? unusable(service));
}

async function readDescription({ runtimeSocket, ...options }: ReloadOptions): Promise<string | undefined> {
  const [info = ''] = await askRuntime(runtimeSocket, ['show info'], options);
  return parseDescription(info);
}

async function readReloads(masterSocket: string, options: RuntimeOptions): Promise<Reloads | undefined> {
  return parseReloads(await askMaster(masterSocket, 'show proc', options));
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

function unusable(service: string): string {
  return `it could not use its configuration (journalctl -u ${service} tells why)`;
}
