// An instance gets a port, or goes: in the registry, then in every worker, without a reload. Nothing that is open is touched.
import { StepError } from '../errors.ts';
import { parseGotMap } from '../haproxy/parse-workers.ts';
import { askWorkers, type WorkerAnswers } from '../haproxy/workers.ts';
import type { Outcome } from '../outcome.ts';
import { parseInstance, parsePort } from './parse.ts';
import { proxyPaths, proxyService } from './paths.ts';
import {
  ignoreAbsence,
  loadInstances,
  type ProxyContext,
  tellUntold,
  underProxyLock,
  writeInstances,
} from './registry.ts';

export type Registration = {
  instance: string;
  port: number;
  /** The port before; undefined for a new one. */
  was: number | undefined;
  /** False: no HAProxy runs; the next one starts with it. */
  isRunning: boolean;
};

/**
 * In force at the next request once it returns. Throws InputError for what cannot be registered, BusyError, and whatever
 * keeps a worker from it, as UnavailableError with the code `untold` or StepError: the registry has it then, and the next
 * `proxy sync` brings it.
 */
export async function registerInstance(
  ctx: ProxyContext,
  instance: string,
  port: number,
  { waitMs }: { waitMs?: number } = {},
): Promise<Registration> {
  parseInstance(instance);
  parsePort(port);
  return await underProxyLock(
    ctx,
    async () => {
      const instances = await loadInstances(ctx);
      const was = instances.get(instance);
      if (was !== port) await writeInstances(ctx, new Map(instances).set(instance, port));
      const what = `${instance} is at port ${port}, as it is registered`;
      const isRunning = await tellPort(ctx, instance, port).catch(tellUntold(what));
      return { instance, port, was, isRunning };
    },
    waitMs,
  );
}

export async function setInstance(
  ctx: ProxyContext,
  instance: string,
  portText: string,
  options: { waitMs?: number } = {},
): Promise<Outcome> {
  const { port, was, isRunning } = await registerInstance(ctx, instance, parsePort(portText), options);
  const before = was === undefined || was === port ? '' : `, before ${was}`;
  return {
    outcome: was === port ? 'nothing-to-do' : 'done',
    text: [
      isRunning
        ? `${instance} is at port ${port}${before}`
        : `${instance} is registered at port ${port}${before}, in force once ${proxyService} runs`,
    ],
    data: { instance, port, running: isRunning },
  };
}

/** Requests for it are answered 502 from now on; what is open stays open. */
export async function removeInstance(
  ctx: ProxyContext,
  instance: string,
  options: { waitMs?: number } = {},
): Promise<Outcome> {
  parseInstance(instance);
  const port = await underProxyLock(
    ctx,
    async () => {
      const instances = new Map(await loadInstances(ctx));
      const was = instances.get(instance);
      if (instances.delete(instance)) await writeInstances(ctx, instances);
      await tellGone(ctx, instance).catch(tellUntold(`${instance} is gone, as it is from the registry`));
      return was;
    },
    options.waitMs,
  );
  return {
    outcome: port === undefined ? 'nothing-to-do' : 'done',
    text: [port === undefined ? `${instance} is not registered` : `${instance} is gone, before port ${port}`],
    data: { instance, removed: port !== undefined },
  };
}

/** `set map` changes what is there, and `add map` makes a second one of it, so each has its case. */
async function tellPort({ paths, signal }: ProxyContext, instance: string, port: number): Promise<boolean> {
  const { instancesMap, masterSocket } = proxyPaths(paths);
  const options = { signal, service: proxyService };
  const entry = `${instancesMap} ${instance}`;
  const look = `get map ${entry}`;
  const workers = await askWorkers(masterSocket, [`set map ${entry} ${port}`, look], options).catch(
    ignoreAbsence,
  );
  if (workers === undefined) return false;
  const without = new Set(workers.filter((worker) => lastGot(worker) === undefined).map(({ pid }) => pid));
  const told = await (without.size === 0
    ? workers
    : askWorkers(
        masterSocket,
        ({ pid }) => (without.has(pid) ? [`add map ${entry} ${port}`, look] : [look]),
        options,
      ));
  const wrong = told.find((worker) => lastGot(worker) !== String(port));
  if (wrong === undefined) return true;
  const has = lastGot(wrong) ?? 'nothing';
  throw new StepError(
    `cannot register ${instance} with worker ${wrong.pid} of HAProxy: it has ${has} instead of ${port} (reeve proxy sync)`,
  );
}

async function tellGone({ paths, signal }: ProxyContext, instance: string): Promise<void> {
  const { instancesMap, masterSocket } = proxyPaths(paths);
  const entry = `${instancesMap} ${instance}`;
  const commands = [`del map ${entry}`, `get map ${entry}`];
  const options = { signal, service: proxyService };
  const workers = (await askWorkers(masterSocket, commands, options).catch(ignoreAbsence)) ?? [];
  const wrong = workers.find((worker) => lastGot(worker) !== undefined);
  if (wrong === undefined) return;
  throw new StepError(
    `cannot remove ${instance} from worker ${wrong.pid} of HAProxy: it still has it (reeve proxy sync)`,
  );
}

function lastGot({ answers }: WorkerAnswers): string | undefined {
  return parseGotMap(answers.at(-1) ?? '');
}
