// Looks at what commands need: the token's file, the control plane, the user they run as, what is kept of them, and the proxy.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { heartbeatPath, tokenHeader } from '../agenda/wire.ts';
import { commandsDir } from '../commands/records.ts';
import { surveyCommands } from '../commands/survey.ts';
import { compileConfig } from '../config/compile.ts';
import type { CommandsConfig } from '../config/config.ts';
import { readMainSource } from '../config/load.ts';
import { describeError, ReeveError, UnavailableError } from '../errors.ts';
import { isSystemdRunning } from '../exec/systemd.ts';
import { isHaproxyInstalled } from '../haproxy/binary.ts';
import { readBeatsTo } from '../heartbeat/beats.ts';
import { openHttp } from '../http/client.ts';
import { compareWorkers, listMapFiles, readMapValues } from '../proxy/compare.ts';
import { resolveBackendHost } from '../proxy/host.ts';
import { readDraining } from '../proxy/list.ts';
import { proxyPaths } from '../proxy/paths.ts';
import { countTunnels } from '../proxy/tunnels.ts';
import { silentLog } from '../report/log.ts';
import { findUser } from '../runner/user.ts';
import { lookAt } from './gather-files.ts';
import type { CommandsFacts, ProxyFacts } from './judge-commands.ts';
import { describeSilence, isHung } from './silence.ts';
import type { World } from './world.ts';

const answerMs = 4_000;

/** What a registration takes between its file and the last worker, many times over. */
const registrationMs = 500;

/** More files of commands than this are not looked at one by one. */
const mostFiles = 1_000;

export async function gatherCommands(world: World, commands: CommandsConfig): Promise<CommandsFacts> {
  const { base, signal } = world;
  const ctx = { ...base, log: silentLog };
  const { paths, overrides } = base;
  const { tokenFile = paths.configFile } = compileConfig(readMainSource(paths, overrides), base);
  const { centralBaseUrl } = commands;
  const origin = centralBaseUrl === '' ? undefined : new URL(centralBaseUrl).origin;
  const [beats, server, survey, files, userProblem] = await Promise.all([
    readBeatsTo(ctx, 'commands', origin),
    askControlPlane(commands, signal),
    surveyCommands(ctx),
    listFiles(world),
    findUser({ signal }, commands.user).then(
      () => undefined,
      (error: unknown) => describeError(error),
    ),
  ]);
  return {
    ...{ origin, server },
    ...{ tokenFile: await lookAt(tokenFile), files, survey, beats },
    ...{ heartbeatIntervalMs: commands.heartbeatIntervalMs, userProblem },
    hasSystemd: isSystemdRunning(),
  };
}

/** A heartbeat is sent by POST alone: asked like this, the control plane learns nothing, and any answer says that it is there. */
async function askControlPlane(
  { centralBaseUrl, machineId, token }: CommandsConfig,
  signal: AbortSignal,
): Promise<CommandsFacts['server']> {
  if (centralBaseUrl === '') return undefined;
  const http = openHttp({ baseUrl: centralBaseUrl, headers: { [tokenHeader]: token }, signal });
  try {
    const path = heartbeatPath(machineId);
    const { status } = await http.send({ method: 'GET', path, timeoutMs: answerMs });
    return { reachable: true, status };
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    return { reachable: false, why: describeError(error) };
  } finally {
    http.close();
  }
}

async function listFiles({ base }: World): Promise<CommandsFacts['files']> {
  const directory = commandsDir(base.paths);
  const names = await readdir(directory).catch(() => []);
  return await Promise.all(names.slice(0, mostFiles).map((name) => lookAt(join(directory, name))));
}

export async function gatherProxy({ base, signal }: World, commands: CommandsConfig): Promise<ProxyFacts> {
  const { paths } = base;
  const { proxyBackendHost: host } = commands;
  const about = {
    socket: proxyPaths(paths).masterSocket,
    isDraining: await readDraining({ paths }),
    hasSystemd: isSystemdRunning(),
  };
  const [isInstalled, hostProblem] = await Promise.all([
    isHaproxyInstalled(),
    resolveBackendHost(host, { current: undefined, signal }).then(
      () => undefined,
      (error: unknown) => describeError(error),
    ),
  ]);
  if (!isInstalled) return { ...about, isInstalled, hostProblem };
  try {
    const { total, workers } = await countTunnels({ paths, signal, timeoutMs: answerMs });
    const differences = await listDifferences({ paths, signal });
    return { ...about, isInstalled, hostProblem, differences, tunnels: total, workers: workers.length };
  } catch (error) {
    if (!(error instanceof ReeveError)) throw error;
    return { ...about, isInstalled, hostProblem, error: describeSilence(error), isHung: isHung(error) };
  }
}

type CompareContext = Parameters<typeof compareWorkers>[0];

/** Without the lock, a registration may come between the files and the workers: only what a second look finds as well differs. */
async function listDifferences(ctx: CompareContext): Promise<string[]> {
  const first = await lookForDifferences(ctx);
  if (first.length === 0) return [];
  await sleep(registrationMs, undefined, { signal: ctx.signal }).catch(() => {});
  const second = new Set(await lookForDifferences(ctx));
  return first.filter((what) => second.has(what));
}

async function lookForDifferences(ctx: CompareContext): Promise<string[]> {
  const files = listMapFiles(ctx, await readMapValues(ctx));
  const compared = (await compareWorkers(ctx, files)) ?? [];
  return compared.flatMap(({ repairs }) => repairs.map(({ what }) => what));
}
