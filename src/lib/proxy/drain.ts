// No new tunnels, time for the present ones to end, and the end of those that do not, in every worker. The stop action of
// the unit: what comes after it cuts uncounted, so nothing but an interruption ends it early. Plain requests are served all
// the while.
import { setTimeout as sleep } from 'node:timers/promises';
import {
  BusyError,
  describeError,
  ReeveError,
  StepError,
  systemErrorCode,
  UnavailableError,
} from '../errors.ts';
import { parseGotMap } from '../haproxy/parse-workers.ts';
import { askWorkers, type WorkerAnswers } from '../haproxy/workers.ts';
import type { Outcome } from '../outcome.ts';
import { formatDuration } from '../time.ts';
import { readSingle } from './compare.ts';
import { drainKey } from './parse.ts';
import { proxyPaths, proxyService } from './paths.ts';
import { ignoreAbsence, type ProxyContext, tellUntold, underProxyLock, writeMap } from './registry.ts';
import { closeTunnels, sumTunnels } from './tunnels.ts';

const pollMs = 100;
/** Others hold the lock for milliseconds, or hang; a stop waits for none of these. */
const lockMs = 2_000;
/** For every worker to hear of it, and for every tunnel to be closed: with `lockMs` and `closeMs` below the margin of a stop. */
const tellMs = 10_000;
const forceMs = 10_000;
/** Above `server-fin`. */
const closeMs = 3_000;

/** Tunnels as counted: at first, and now. Undefined where HAProxy has not said so yet. */
type Count = {
  first?: number;
  left?: number;
  isWritten: boolean;
  /** Looks in a row that found nobody listening, each of them five seconds long. */
  refusals: number;
};

/** A HAProxy that was killed leaves its socket behind; one that only reads its file anew is back long before. */
const mostRefusals = 2;

export async function drainProxy(ctx: ProxyContext, { boundMs }: { boundMs: number }): Promise<Outcome> {
  const count: Count = { isWritten: await writeDrain(ctx), refusals: 0 };
  if (!(await refuseTunnels(ctx, count))) {
    if (count.isWritten) await takeBack(ctx);
    return {
      outcome: 'nothing-to-do',
      text: [`${proxyService} does not run: there are no tunnels, and its start takes new ones`],
      data: { tunnels: 0, ended: 0, forced: 0, draining: false },
    };
  }
  ctx.log.info(
    `new tunnels are refused; ${count.first ?? 'those open'} have ${formatDuration(boundMs)} to end`,
  );
  await waitForEnds(ctx, count, performance.now() + boundMs);
  requireUninterrupted(ctx, count);
  const forced = count.left === 0 ? 0 : await forceEnds(ctx, count);
  const tunnels = Math.max(count.first ?? 0, forced);
  if (forced > 0) ctx.log.warning(`tunnels closed by force after ${formatDuration(boundMs)}: ${forced}`);
  const isDraining = !count.isWritten || (await readDrain(ctx)) === 'on';
  return {
    outcome: 'done',
    text: [
      `drained: tunnels that ended by themselves: ${tunnels - forced}; closed by force: ${forced}`,
      ...(isDraining
        ? [`new tunnels are refused until \`reeve proxy drain --end\`, or a start of ${proxyService}`]
        : []),
    ],
    data: { tunnels, ended: tunnels - forced, forced, draining: isDraining },
  };
}

/** A start ends it as well: a file that cannot be written is no failure. */
async function takeBack(ctx: ProxyContext): Promise<void> {
  await underProxyLock(ctx, async () => await writeFlag(ctx, 'off'), lockMs).catch((error: unknown) => {
    if (!(error instanceof ReeveError) || ctx.signal.aborted) throw error;
    ctx.log.warning(`the drain stands in its file until ${proxyService} starts: ${describeError(error)}`);
  });
}

/** New tunnels are taken again. */
export async function endDrain(ctx: ProxyContext): Promise<Outcome> {
  const workers = await underProxyLock(ctx, async () => {
    await writeFlag(ctx, 'off');
    return await tellWorkers(ctx, 'off').catch(tellUntold('the drain is over, as its file says'));
  });
  const wrong = workers === undefined ? undefined : findWrong(workers, 'off');
  if (wrong !== undefined) {
    throw new StepError(`cannot end the drain in worker ${wrong} of HAProxy: reeve proxy sync`);
  }
  const isRunning = workers !== undefined;
  return {
    outcome: 'done',
    text: [isRunning ? 'new tunnels are taken' : `new tunnels are taken once ${proxyService} runs`],
    data: { running: isRunning, draining: false },
  };
}

/**
 * The file first, so that a reload in the middle of a drain goes on with it; a stop does not depend on it, nor on its lock.
 * False: it could not be written.
 */
async function writeDrain(ctx: ProxyContext): Promise<boolean> {
  const write = async (): Promise<void> => await writeFlag(ctx, 'on');
  try {
    await underProxyLock(ctx, write, lockMs).catch(async (error: unknown) => {
      if (!(error instanceof BusyError)) throw error;
      ctx.log.warning(`the drain goes on without the lock: ${describeError(error)}`);
      await write();
    });
    return true;
  } catch (error) {
    if (!(error instanceof ReeveError) || ctx.signal.aborted) throw error;
    ctx.log.warning(`a reload would take tunnels again: ${describeError(error)}`);
    return false;
  }
}

/** False where no HAProxy runs. */
async function refuseTunnels(ctx: ProxyContext, count: Count): Promise<boolean> {
  const signal = endAt(ctx, performance.now() + tellMs);
  for (;;) {
    const answer = await ask({ ...ctx, signal }, 'on', count);
    if (answer === 'not-running') return false;
    if (answer !== 'no-answer') {
      const wrong = findWrong(answer.workers, 'on');
      if (wrong !== undefined) ctx.log.warning(`worker ${wrong} of HAProxy does not take the drain`);
      count.first = count.left = answer.tunnels;
      return true;
    }
    requireUninterrupted(ctx, count);
    if (signal.aborted) return tellSilence(ctx, count);
    await pause(signal);
  }
}

/** Whether there is anybody: where nobody listens, no tunnel is left either. */
function tellSilence({ log }: ProxyContext, { refusals }: Count): boolean {
  if (refusals === 0) log.warning('HAProxy does not say how many tunnels there are');
  return refusals === 0;
}

async function waitForEnds(ctx: ProxyContext, count: Count, until: number): Promise<void> {
  const signal = endAt(ctx, until);
  while (count.left !== 0 && performance.now() < until && !ctx.signal.aborted) {
    await pause(signal);
    if (signal.aborted) return;
    // Where HAProxy has ended meanwhile, so have they. Without an answer, the next one tells.
    const answer = await ask({ ...ctx, signal }, count.isWritten ? await readDrain(ctx) : 'on', count);
    if (answer === 'no-answer') continue;
    count.left = answer === 'not-running' ? 0 : answer.tunnels;
    count.first ??= count.left;
  }
}

/**
 * Answers how many were open. HAProxy does not close a tunnel whose client has closed its half already; such a one ends by
 * itself when its instance has been silent for `server-fin`, or with HAProxy. So they are told once, and waited for a while.
 */
async function forceEnds(ctx: ProxyContext, count: Count): Promise<number> {
  const forced = await closeAll(ctx, count);
  count.left = forced;
  await waitForEnds(ctx, count, performance.now() + closeMs);
  if (count.left !== 0) ctx.log.warning(`tunnels that are half closed and have not ended yet: ${count.left}`);
  return forced;
}

/** An order that got no answer may have been followed: then all that were left have ended by force. */
async function closeAll(ctx: ProxyContext, count: Count): Promise<number> {
  const signal = endAt(ctx, performance.now() + forceMs);
  let last: UnavailableError | undefined;
  for (let isTold = false; ; isTold = true) {
    const closed = await closeTunnels({ ...ctx, signal }).catch((error: unknown) => {
      requireUninterrupted(ctx, count);
      // At the end it is our own bound that ends the look, which says nothing of why.
      if (!(error instanceof UnavailableError) || signal.aborted) throw last ?? error;
      last = error;
      return error.code === 'not-running' ? 0 : undefined;
    });
    if (closed !== undefined) return isTold ? Math.max(count.left ?? 0, closed) : closed;
    await pause(signal);
  }
}

type Answer = { workers: readonly WorkerAnswers[]; tunnels: number } | 'not-running' | 'no-answer';

/** A sync that began before may have undone the order: so it is given with each look. */
async function ask(ctx: ProxyContext, value: 'on' | 'off', count: Count): Promise<Answer> {
  try {
    const workers = await tellWorkers(ctx, value);
    count.refusals = 0;
    return workers === undefined ? 'not-running' : { workers, tunnels: sumTunnels(workers).total };
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    if (systemErrorCode(error.cause) === 'ECONNREFUSED') count.refusals += 1;
    return count.refusals < mostRefusals ? 'no-answer' : 'not-running';
  }
}

/** With the answer to `show stat` as the last one. Undefined where no HAProxy runs. */
async function tellWorkers(
  { paths, signal }: ProxyContext,
  value: 'on' | 'off',
): Promise<WorkerAnswers[] | undefined> {
  const { flagsMap, masterSocket } = proxyPaths(paths);
  const entry = `${flagsMap} ${drainKey}`;
  const commands = [`set map ${entry} ${value}`, `get map ${entry}`, 'show stat'];
  return await askWorkers(masterSocket, commands, { signal, service: proxyService }).catch(ignoreAbsence);
}

function findWrong(workers: readonly WorkerAnswers[], value: 'on' | 'off'): number | undefined {
  return workers.find(({ answers: [, got = ''] }) => parseGotMap(got) !== value)?.pid;
}

async function writeFlag(ctx: ProxyContext, value: 'on' | 'off'): Promise<void> {
  await writeMap(ctx, proxyPaths(ctx.paths).flagsMap, `${drainKey} ${value}\n`);
}

/** `off` where somebody has ended the drain meanwhile. */
async function readDrain({ paths }: ProxyContext): Promise<'on' | 'off'> {
  const value = await readSingle(proxyPaths(paths).flagsMap, drainKey).catch(() => undefined);
  return value === 'off' ? 'off' : 'on';
}

function endAt({ signal }: ProxyContext, until: number): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(Math.max(0, Math.ceil(until - performance.now())))]);
}

async function pause(signal: AbortSignal): Promise<void> {
  await sleep(pollMs, undefined, { signal }).catch(() => {});
}

function requireUninterrupted(ctx: ProxyContext, { left }: Count): void {
  if (!ctx.signal.aborted) return;
  const open = left === undefined ? 'tunnels' : `${left} tunnels`;
  throw new StepError(
    `cannot drain the proxy: interrupted with ${open} open; new ones are refused until \`reeve proxy drain --end\``,
    { code: 'interrupted' },
  );
}
