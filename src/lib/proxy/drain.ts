// No new tunnels, time for the present ones to end, and the end of those that do not, in every worker. The stop action of
// the unit. Plain requests are served all the while.
import { setTimeout as sleep } from 'node:timers/promises';
import { StepError } from '../errors.ts';
import { parseGotMap } from '../haproxy/parse-workers.ts';
import { askWorkers } from '../haproxy/workers.ts';
import type { Outcome } from '../outcome.ts';
import { formatDuration } from '../time.ts';
import { drainKey } from './parse.ts';
import { proxyPaths, proxyService } from './paths.ts';
import { ignoreAbsence, type ProxyContext, underProxyLock, writeMap } from './registry.ts';
import { closeTunnels, countTunnels, sumTunnels } from './tunnels.ts';

const pollMs = 100;
/** Above `server-fin`. */
const closeMs = 3_000;

export async function drainProxy(ctx: ProxyContext, { boundMs }: { boundMs: number }): Promise<Outcome> {
  const until = performance.now() + boundMs;
  const tunnels = await setDraining(ctx, true);
  if (tunnels === undefined) {
    return {
      outcome: 'nothing-to-do',
      text: [`${proxyService} does not run: there are no tunnels`],
      data: { tunnels: 0, ended: 0, forced: 0 },
    };
  }
  ctx.log.info(`new tunnels are refused; ${tunnels} have ${formatDuration(boundMs)} to end`);
  const left = await waitForEnds(ctx, tunnels, until);
  if (ctx.signal.aborted) {
    throw new StepError(
      `cannot drain the proxy: interrupted with ${left} tunnels open; new ones are refused until \`reeve proxy drain --end\``,
      { code: 'interrupted' },
    );
  }
  const forced = left === 0 ? 0 : await forceEnds(ctx);
  const ended = Math.max(0, tunnels - forced);
  if (forced > 0) ctx.log.warning(`tunnels closed by force after ${formatDuration(boundMs)}: ${forced}`);
  return {
    outcome: 'done',
    text: [`drained: tunnels that ended by themselves: ${ended}; closed by force: ${forced}`],
    data: { tunnels, ended, forced },
  };
}

/** New tunnels are taken again. */
export async function endDrain(ctx: ProxyContext): Promise<Outcome> {
  const isRunning = (await setDraining(ctx, false)) !== undefined;
  return {
    outcome: 'done',
    text: [isRunning ? 'new tunnels are taken' : `new tunnels are taken once ${proxyService} runs`],
    data: { running: isRunning },
  };
}

/**
 * The file first, so that a reload in the middle of a drain goes on with it. Answers how many tunnels there are at that moment;
 * undefined where no HAProxy runs.
 */
async function setDraining(ctx: ProxyContext, isDraining: boolean): Promise<number | undefined> {
  const { flagsMap, masterSocket } = proxyPaths(ctx.paths);
  const value = isDraining ? 'on' : 'off';
  const options = { signal: ctx.signal, service: proxyService };
  const entry = `${flagsMap} ${drainKey}`;
  const commands = [`set map ${entry} ${value}`, `get map ${entry}`, 'show stat'];
  const workers = await underProxyLock(ctx, async () => {
    await writeMap(ctx, flagsMap, `${drainKey} ${value}\n`);
    return await askWorkers(masterSocket, commands, options).catch(ignoreAbsence);
  });
  const wrong = workers?.find(({ answers: [, got = ''] }) => parseGotMap(got) !== value);
  if (wrong === undefined) return workers === undefined ? undefined : sumTunnels(workers).total;
  throw new StepError(`cannot switch the drain ${value} in worker ${wrong.pid} of HAProxy: reeve proxy sync`);
}

async function waitForEnds(ctx: ProxyContext, tunnels: number, until: number): Promise<number> {
  let left = tunnels;
  while (left > 0 && performance.now() < until && !ctx.signal.aborted) {
    await sleep(Math.min(pollMs, until - performance.now()), undefined, { signal: ctx.signal }).catch(
      () => {},
    );
    if (ctx.signal.aborted) break;
    // Where HAProxy has ended meanwhile, so have they.
    left = (await countTunnels(ctx).catch(ignoreAbsence))?.total ?? 0;
  }
  return left;
}

/**
 * Answers how many were open. HAProxy does not close a tunnel whose client has closed its half already; such a one ends by
 * itself when its instance has been silent for `server-fin`, or with HAProxy. So they are told once, and waited for a while.
 */
async function forceEnds(ctx: ProxyContext): Promise<number> {
  const forced = await closeTunnels(ctx);
  const left = await waitForEnds(ctx, forced, performance.now() + closeMs);
  if (left > 0) ctx.log.warning(`tunnels that are half closed and have not ended yet: ${left}`);
  return forced;
}
