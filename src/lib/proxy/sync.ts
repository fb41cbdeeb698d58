// Brings every worker's maps to the files, and the files to the configuration: at the start, and at each heartbeat. The
// registry is right; what a worker has otherwise is told and mended. Workers of before a reload lose their last tunnels here.
import type { CommandsConfig } from '../config/config.ts';
import { describeError, StepError, UnavailableError } from '../errors.ts';
import { askWorkers } from '../haproxy/workers.ts';
import type { Outcome } from '../outcome.ts';
import { formatDuration } from '../time.ts';
import { compareWorkers, listMapFiles, readSingle } from './compare.ts';
import { resolveBackendHost } from './host.ts';
import { drainKey, hostKey } from './parse.ts';
import { proxyPaths, proxyService } from './paths.ts';
import type { MapFile } from './plan.ts';
import {
  ignoreAbsence,
  loadInstances,
  type ProxyContext,
  readMap,
  underProxyLock,
  writeInstances,
  writeMap,
} from './registry.ts';
import { closeOverdueTunnels } from './tunnels.ts';

export type SyncReport = {
  instances: number;
  /** False: no HAProxy runs; the files are ready for it. */
  isRunning: boolean;
  /** What differed, and does no longer. */
  repaired: readonly string[];
  /** Tunnels of workers that a reload has left behind for longer than the bound of a drain. */
  forced: number;
};

type HostConfig = Pick<CommandsConfig, 'proxyBackendHost'>;
type SyncConfig = Pick<CommandsConfig, 'proxyBackendHost' | 'proxyDrainTimeoutMs'>;
type SyncOptions = { waitMs?: number };

/** Throws UnavailableError, BusyError, and StepError for what a worker does not take. */
export async function syncProxy(
  ctx: ProxyContext,
  { proxyBackendHost, proxyDrainTimeoutMs }: SyncConfig,
  { waitMs }: SyncOptions = {},
): Promise<SyncReport> {
  // A slow answer keeps nobody from the lock.
  const host = await findHost(ctx, proxyBackendHost);
  if (typeof host !== 'string') throw host.problem;
  const { count, drain, repaired } = await underProxyLock(
    ctx,
    async () => {
      const { files, ...about } = await syncFiles(ctx, { host, starts: false });
      return { ...about, repaired: await syncWorkers(ctx, files) };
    },
    waitMs,
  );
  for (const what of repaired ?? []) ctx.log.warning(`the proxy was repaired: ${what}`);
  // A drain has a bound of its own, and counts them all.
  const isOpen = repaired !== undefined && drain === 'off';
  const forced = isOpen ? await endOverdue(ctx, proxyDrainTimeoutMs) : 0;
  return { instances: count, isRunning: repaired !== undefined, repaired: repaired ?? [], forced };
}

/** A reload gives tunnels the time that a stop gives them, in the worker that it leaves behind. */
async function endOverdue(ctx: ProxyContext, boundMs: number): Promise<number> {
  const forced = (await closeOverdueTunnels(ctx, boundMs).catch(ignoreAbsence)) ?? 0;
  if (forced > 0) {
    ctx.log.warning(`tunnels closed by force ${formatDuration(boundMs)} after a reload: ${forced}`);
  }
  return forced;
}

/**
 * Before HAProxy starts: its files are there, and new tunnels are taken again. Without an address it starts as well, and
 * answers 502 until the next sync. `commands` undefined: the configuration cannot be read, which is no reason to keep a HAProxy
 * down that has run before.
 */
export async function prepareProxy(
  ctx: ProxyContext,
  commands: HostConfig | undefined,
  { waitMs }: SyncOptions = {},
): Promise<Outcome> {
  const before = commands === undefined ? await readHost(ctx) : undefined;
  const host = before ?? (await findHost(ctx, commands?.proxyBackendHost ?? defaultHost));
  if (typeof host !== 'string') ctx.log.warning(`${host.problem.message}: nothing is served until it can`);
  const address = typeof host === 'string' ? host : undefined;
  const { count } = await underProxyLock(
    ctx,
    async () => await syncFiles(ctx, { host: address, starts: true }),
    waitMs,
  );
  return {
    outcome: 'done',
    text: [`the files of the proxy are ready: ${tellInstances(count)}`],
    data: { instances: count },
  };
}

const defaultHost = '127.0.0.1';

export async function runSync(
  ctx: ProxyContext,
  commands: SyncConfig,
  options: SyncOptions = {},
): Promise<Outcome> {
  const { instances, isRunning, repaired, forced } = await syncProxy(ctx, commands, options);
  const state = isRunning
    ? `HAProxy has ${tellInstances(instances)}`
    : `${proxyService} does not run; the files have ${tellInstances(instances)}`;
  return {
    outcome: repaired.length > 0 || forced > 0 || !isRunning ? 'done' : 'nothing-to-do',
    // Each was told as it was done.
    text: [[state, ...tellChanges({ repaired, forced })].join('; ')],
    data: { instances, running: isRunning, repaired, forced },
  };
}

/** In a few words, for an answer. */
export function tellChanges({ repaired, forced }: Pick<SyncReport, 'repaired' | 'forced'>): string[] {
  return [
    ...(repaired.length > 0 ? [`repaired: ${repaired.length}`] : []),
    ...(forced > 0 ? [`tunnels of before a reload closed by force: ${forced}`] : []),
  ];
}

/** A name that cannot be looked up just now keeps the address it had. */
async function findHost(ctx: ProxyContext, name: string): Promise<string | { problem: UnavailableError }> {
  const current = await readHost(ctx);
  try {
    return await resolveBackendHost(name, { current, signal: ctx.signal });
  } catch (error) {
    if (!(error instanceof UnavailableError) || ctx.signal.aborted) throw error;
    if (current === undefined) return { problem: error };
    ctx.log.warning(`${describeError(error)}: it stays ${current}`);
    return current;
  }
}

async function readHost({ paths }: ProxyContext): Promise<string | undefined> {
  return await readSingle(proxyPaths(paths).hostMap, hostKey);
}

async function syncFiles(
  ctx: ProxyContext,
  { host, starts }: { host: string | undefined; starts: boolean },
): Promise<{ count: number; drain: 'on' | 'off'; files: MapFile[] }> {
  const { instancesMap, flagsMap, hostMap } = proxyPaths(ctx.paths);
  const instances = await loadInstances(ctx);
  if ((await readMap(instancesMap)) === undefined) await writeInstances(ctx, instances);
  const drain = !starts && (await readSingle(flagsMap, drainKey)) === 'on' ? 'on' : 'off';
  await keepMap(ctx, flagsMap, `${drainKey} ${drain}\n`);
  await keepMap(ctx, hostMap, host === undefined ? '' : `${hostKey} ${host}\n`);
  return { count: instances.size, drain, files: listMapFiles(ctx, { instances, drain, host }) };
}

/** Undefined where none runs. */
async function syncWorkers(ctx: ProxyContext, files: readonly MapFile[]): Promise<string[] | undefined> {
  const compared = await compareWorkers(ctx, files);
  if (compared === undefined) return undefined;
  const found = compared.filter(({ repairs }) => repairs.length > 0);
  if (found.length === 0) return [];
  const commandsOf = new Map(
    found.map(({ pid, repairs }) => [pid, repairs.flatMap(({ commands }) => commands)]),
  );
  const { masterSocket } = proxyPaths(ctx.paths);
  const options = { signal: ctx.signal, service: proxyService };
  await askWorkers(masterSocket, ({ pid }) => commandsOf.get(pid) ?? [], options);
  await requireSame(ctx, files);
  return found.flatMap(({ pid, repairs: mended }) => mended.map(({ what }) => `${what} in worker ${pid}`));
}

async function requireSame(ctx: ProxyContext, files: readonly MapFile[]): Promise<void> {
  for (const { pid, repairs } of (await compareWorkers(ctx, files)) ?? []) {
    const [left] = repairs;
    if (left === undefined) continue;
    throw new StepError(`cannot repair the proxy: in worker ${pid} of HAProxy still ${left.what}`);
  }
}

async function keepMap(ctx: ProxyContext, path: string, text: string): Promise<void> {
  if ((await readMap(path)) !== text) await writeMap(ctx, path, text);
}

function tellInstances(count: number): string {
  return `${count} instance${count === 1 ? '' : 's'}`;
}
