// HAProxy as the balancer: compares what runs with the routes, and changes what differs without a reload wherever it can.
import { mkdir, readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { HaproxyConfig } from '../config/config.ts';
import type { Context } from '../context.ts';
import { ReeveError, StepError, systemErrorCode, UnavailableError } from '../errors.ts';
import { requireUsable } from '../haproxy/binary.ts';
import { requireFrontend } from '../haproxy/probe.ts';
import { reloadWorkers } from '../haproxy/reload.ts';
import { writeFileAtomic } from '../state/atomic-file.ts';
import { fileError } from '../state/file-error.ts';
import type { Balancer, BalancerChange } from './balancer.ts';
import {
  type BalancerFile,
  describeStructure,
  noRoute,
  parseHealthPaths,
  renderBalancerFile,
} from './balancer-file.ts';
import { fetchBalancerLive, fetchBalancerStamp, fetchBusyServers } from './balancer-live.ts';
import { balancerFile, balancerService, masterSocket, runtimeSocket } from './balancer-path.ts';
import { applyServerSteps } from './balancer-servers.ts';
import {
  type BalancerFacts,
  type BalancerStep,
  type FileStep,
  hasDrained,
  planBalancer,
  planWithoutReload,
  type ServerStep,
} from './plan-balancer.ts';
import type { Route } from './route.ts';

type Scope = {
  ctx: Pick<Context, 'paths' | 'signal' | 'log'>;
  /** Where HAProxy's sockets are. */
  directory: string;
};

/** `render` for an address that was changed, which moves the socket; `start` for an HAProxy that was installed later. */
const startRemedy = '`reeve units render --write`, then `systemctl start reeve-balancer`';

/** Without what it needs of Caddy, which is for the caller to say. */
export type HaproxyBalancer = Omit<Balancer, 'buildCaddyDocument'>;

/**
 * `apply` throws where something could not be done, after it has done everything else. Where HAProxy cannot be asked at
 * all, that is the file that it will start from.
 */
export function createHaproxyBalancer(
  ctx: Scope['ctx'],
  { directory, address }: HaproxyConfig,
): HaproxyBalancer {
  const scope = { ctx, directory };
  return {
    name: 'haproxy',
    fetchStamp: async () => {
      try {
        const { mtimeNs, size, ino } = await stat(balancerFile(ctx.paths), { bigint: true });
        const served = await fetchBalancerStamp(directory, ctx);
        return served === undefined ? undefined : `${served} ${mtimeNs} ${size} ${ino}`;
      } catch {
        return undefined;
      }
    },
    requireReady: () => requireFrontend(address, { signal: ctx.signal, word: noRoute, remedy: startRemedy }),
    readHealthPaths: async () => {
      // Where there is no file to be read, `apply` says so.
      const text = await readFile(balancerFile(ctx.paths), 'utf8').catch(() => '');
      return parseHealthPaths(text);
    },
    compare: async (routes) => {
      const facts = await gatherBalancer(scope, routes, await compareFile(scope, routes));
      return { changes: planBalancer(facts).map(toChange) };
    },
    apply: async (routes) => {
      const file = await compareFile(scope, routes);
      const facts = await gatherBalancer(scope, routes, file).catch(async (error: unknown) => {
        const isAway = error instanceof UnavailableError && !ctx.signal.aborted;
        if (isAway && !file.isCurrent) await writeBalancerFile(scope, file.text, { check: true });
        throw error;
      });
      return (await applyPlan(scope, facts, file)).map(toChange);
    },
  };
}

type ComparedFile = BalancerFile & { isCurrent: boolean; healthPaths: ReadonlyMap<string, string> };

async function compareFile({ ctx }: Scope, routes: readonly Route[]): Promise<ComparedFile> {
  const file = renderBalancerFile(routes);
  const path = balancerFile(ctx.paths);
  try {
    const before = await readFile(path, 'utf8');
    return { ...file, isCurrent: before === file.text, healthPaths: parseHealthPaths(before) };
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return { ...file, isCurrent: false, healthPaths: new Map() };
    throw fileError('read', path, error);
  }
}

async function gatherBalancer(
  { ctx, directory }: Scope,
  routes: readonly Route[],
  { structure, isCurrent, healthPaths }: ComparedFile,
): Promise<BalancerFacts> {
  const live = await fetchBalancerLive(directory, ctx);
  const busy = hasDrained({ routes, live }) ? await fetchBusyServers(directory, ctx) : new Set<string>();
  return { routes, structure, isFileCurrent: isCurrent, healthPaths, live, busy };
}

async function applyPlan(scope: Scope, facts: BalancerFacts, file: BalancerFile): Promise<BalancerStep[]> {
  const { ctx, directory } = scope;
  const steps = planBalancer(facts);
  const fileSteps = steps.filter((step): step is FileStep => !('target' in step));
  const done: BalancerStep[] = [];
  const failures: Error[] = [];
  const reloads = fileSteps.some(({ action }) => action === 'reload');
  try {
    for (const step of fileSteps) {
      await applyFileStep(scope, step, { file, check: reloads });
      done.push(step);
    }
  } catch (error) {
    // A full disk is no reason to send requests to servers that are gone.
    if (!(error instanceof ReeveError)) throw error;
    failures.push(error);
  }
  const serverSteps =
    reloads && failures.length > 0
      ? planWithoutReload(facts)
      : steps.filter((step): step is ServerStep => 'target' in step);
  const result = await applyServerSteps(runtimeSocket({ directory }), serverSteps, ctx);
  done.push(...result.done);
  failures.push(...result.failures);
  const [first] = failures;
  if (first === undefined) return done;
  for (const { action, subject, reason } of done) ctx.log.info(`${action} ${subject}: ${reason}`);
  if (failures.length === 1) throw first;
  throw new StepError(`${first.message} (and ${failures.length - 1} more)`, { cause: first });
}

async function applyFileStep(
  scope: Scope,
  { action }: FileStep,
  { file, check }: { file: BalancerFile; check: boolean },
): Promise<void> {
  const { ctx, directory } = scope;
  switch (action) {
    case 'write':
      return await writeBalancerFile(scope, file.text, { check });
    case 'reload':
      return await reloadWorkers(masterSocket({ directory }), {
        signal: ctx.signal,
        service: balancerService,
        runtimeSocket: runtimeSocket({ directory }),
        description: describeStructure(file.structure),
      });
  }
}

/** Servers alone differ from file to file without any doubt about the rest; what has another structure is tried first. */
async function writeBalancerFile({ ctx }: Scope, text: string, { check }: { check: boolean }): Promise<void> {
  const path = balancerFile(ctx.paths);
  try {
    // HAProxy is another user, and looks for its file here.
    await mkdir(dirname(path), { recursive: true, mode: 0o755 });
  } catch (error) {
    throw fileError('write', path, error);
  }
  if (check) await requireUsable(path, text, ctx);
  await writeFileAtomic(path, text, { mode: 0o644 });
}

function toChange({ action, subject, reason }: BalancerStep): BalancerChange {
  return { action, subject, reason };
}
