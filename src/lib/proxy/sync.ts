// Brings every worker's maps to the files, and the files to the configuration: at the start, and at each heartbeat. The
// registry is right; what a worker has otherwise is told and mended.
import type { CommandsConfig } from '../config/config.ts';
import { describeError, ReeveError, StepError, UnavailableError } from '../errors.ts';
import { parseShownMap } from '../haproxy/parse-workers.ts';
import { askWorkers, type WorkerAnswers } from '../haproxy/workers.ts';
import type { Outcome } from '../outcome.ts';
import { resolveBackendHost } from './host.ts';
import { drainKey, hostKey, type Instances, parseSingleMap } from './parse.ts';
import { proxyPaths, proxyService } from './paths.ts';
import { type MapFile, planRepairs } from './plan.ts';
import {
  ignoreAbsence,
  loadInstances,
  type ProxyContext,
  readMap,
  underProxyLock,
  writeInstances,
  writeMap,
} from './registry.ts';

export type SyncReport = {
  instances: number;
  /** False: no HAProxy runs; the files are ready for it. */
  isRunning: boolean;
  /** What differed, and does no longer. */
  repaired: readonly string[];
};

type SyncOptions = { waitMs?: number };

/** Throws UnavailableError, BusyError, and StepError for what a worker does not take. */
export async function syncProxy(
  ctx: ProxyContext,
  commands: Pick<CommandsConfig, 'proxyBackendHost'>,
  { waitMs }: SyncOptions = {},
): Promise<SyncReport> {
  return await underProxyLock(
    ctx,
    async () => {
      const { instances, files } = await syncFiles(ctx, commands);
      const repaired = await syncWorkers(ctx, files);
      for (const what of repaired ?? []) ctx.log.warning(`the proxy was repaired: ${what}`);
      return { instances: instances.size, isRunning: repaired !== undefined, repaired: repaired ?? [] };
    },
    waitMs,
  );
}

/**
 * Before HAProxy starts: the files are there, and new tunnels are taken again. `commands` undefined: the configuration cannot
 * be read, which is no reason to keep a HAProxy down that has run before.
 */
export async function prepareProxy(
  ctx: ProxyContext,
  commands: Pick<CommandsConfig, 'proxyBackendHost'> | undefined,
  { waitMs }: SyncOptions = {},
): Promise<Outcome> {
  return await underProxyLock(
    ctx,
    async () => {
      const { instances } = await syncFiles(ctx, commands, { starts: true });
      return {
        outcome: 'done',
        text: [`the files of the proxy are ready: ${tellInstances(instances.size)}`],
        data: { instances: instances.size },
      };
    },
    waitMs,
  );
}

export async function runSync(
  ctx: ProxyContext,
  commands: Pick<CommandsConfig, 'proxyBackendHost'>,
  options: SyncOptions = {},
): Promise<Outcome> {
  const { instances, isRunning, repaired } = await syncProxy(ctx, commands, options);
  const state = isRunning
    ? `HAProxy has ${tellInstances(instances)}`
    : `${proxyService} does not run; the files have ${tellInstances(instances)}`;
  return {
    outcome: repaired.length > 0 || !isRunning ? 'done' : 'nothing-to-do',
    text: [...repaired.map((what) => `repaired: ${what}`), state],
    data: { instances, running: isRunning, repaired },
  };
}

type SyncedFiles = { instances: Instances; files: MapFile[] };

async function syncFiles(
  ctx: ProxyContext,
  commands: Pick<CommandsConfig, 'proxyBackendHost'> | undefined,
  { starts = false }: { starts?: boolean } = {},
): Promise<SyncedFiles> {
  const { instancesMap, flagsMap, hostMap } = proxyPaths(ctx.paths);
  const instances = await loadInstances(ctx);
  if ((await readMap(instancesMap)) === undefined) await writeInstances(ctx, instances);
  const drain = !starts && (await readSingle(flagsMap, drainKey)) === 'on' ? 'on' : 'off';
  await keepSingle(ctx, flagsMap, drainKey, drain);
  const host = await syncHost(ctx, commands, { starts });
  const ports = [...instances].map(([name, port]) => [name, String(port)] as const);
  return {
    instances,
    files: [
      { path: instancesMap, entries: new Map(ports) },
      { path: flagsMap, entries: new Map([[drainKey, drain]]) },
      { path: hostMap, entries: new Map(host === undefined ? [] : [[hostKey, host]]) },
    ],
  };
}

/**
 * A name that cannot be looked up just now keeps the address it had. HAProxy starts without any, and answers 502 until the
 * next sync.
 */
async function syncHost(
  ctx: ProxyContext,
  commands: Pick<CommandsConfig, 'proxyBackendHost'> | undefined,
  { starts }: { starts: boolean },
): Promise<string | undefined> {
  const { hostMap } = proxyPaths(ctx.paths);
  const current = await readSingle(hostMap, hostKey);
  if (commands === undefined && current !== undefined) return current;
  const name = commands?.proxyBackendHost ?? defaultHost;
  try {
    const address = await resolveBackendHost(name, { current, signal: ctx.signal });
    await keepSingle(ctx, hostMap, hostKey, address);
    return address;
  } catch (error) {
    if (!(error instanceof UnavailableError) || ctx.signal.aborted) throw error;
    return await goOnWithout(ctx, { error, current, starts });
  }
}

type MissingHost = { error: UnavailableError; current: string | undefined; starts: boolean };

async function goOnWithout(
  ctx: ProxyContext,
  { error, current, starts }: MissingHost,
): Promise<string | undefined> {
  if (current === undefined && !starts) throw error;
  const then = current === undefined ? 'nothing is served' : `it stays ${current}`;
  ctx.log.warning(`${describeError(error)}: ${then}`);
  if (current === undefined) await writeMap(ctx, proxyPaths(ctx.paths).hostMap, '');
  return current;
}

const defaultHost = '127.0.0.1';

/** Undefined where none runs. */
async function syncWorkers(ctx: ProxyContext, files: readonly MapFile[]): Promise<string[] | undefined> {
  const before = await showMaps(ctx, files);
  if (before === undefined) return undefined;
  const repairs = before.map((worker) => ({ ...worker, repairs: planWorker(files, worker) }));
  const found = repairs.filter((worker) => worker.repairs.length > 0);
  if (found.length === 0) return [];
  const commandsOf = new Map(
    found.map((worker) => [worker.pid, worker.repairs.flatMap(({ commands }) => commands)]),
  );
  const { masterSocket } = proxyPaths(ctx.paths);
  const options = { signal: ctx.signal, service: proxyService };
  await askWorkers(masterSocket, ({ pid }) => commandsOf.get(pid) ?? [], options);
  await requireSame(ctx, files);
  return found.flatMap(({ pid, repairs: mended }) => mended.map(({ what }) => `${what} in worker ${pid}`));
}

async function requireSame(ctx: ProxyContext, files: readonly MapFile[]): Promise<void> {
  for (const worker of (await showMaps(ctx, files)) ?? []) {
    const [left] = planWorker(files, worker);
    if (left === undefined) continue;
    throw new StepError(`cannot repair the proxy: in worker ${worker.pid} of HAProxy still ${left.what}`);
  }
}

async function showMaps(
  { paths, signal }: ProxyContext,
  files: readonly MapFile[],
): Promise<WorkerAnswers[] | undefined> {
  const commands = files.map(({ path }) => `show map ${path}`);
  const options = { signal, service: proxyService };
  return await askWorkers(proxyPaths(paths).masterSocket, commands, options).catch(ignoreAbsence);
}

function planWorker(
  files: readonly MapFile[],
  { pid, answers }: WorkerAnswers,
): ReturnType<typeof planRepairs> {
  return files.flatMap((file, index) => {
    const answer = answers[index] ?? '';
    if (answer.startsWith('Unknown map')) {
      const why = `it does not use ${JSON.stringify(file.path)}: has it another file than systemd/reeve-proxy.cfg?`;
      throw new StepError(`cannot sync worker ${pid} of HAProxy: ${why}`);
    }
    return planRepairs(file, parseShownMap(answer));
  });
}

async function readSingle(path: string, key: string): Promise<string | undefined> {
  return parseSingleMap((await readMap(path)) ?? '', key);
}

async function keepSingle(ctx: ProxyContext, path: string, key: string, value: string): Promise<void> {
  const text = `${key} ${value}\n`;
  if ((await readMap(path)) !== text) await writeMap(ctx, path, text);
}

function tellInstances(count: number): string {
  return `${count} instance${count === 1 ? '' : 's'}`;
}

/** For a unit: what is wrong with the configuration is told, and what there is serves. */
export async function loadLeniently<T>(
  load: () => Promise<T>,
  log: ProxyContext['log'],
): Promise<T | undefined> {
  try {
    return await load();
  } catch (error) {
    if (!(error instanceof ReeveError)) throw error;
    log.warning(`the proxy goes on without its configuration: ${describeError(error)}`);
    return undefined;
  }
}
