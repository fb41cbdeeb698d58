// What each worker's maps differ in from what they should have. Read-only.
import type { BaseContext } from '../context.ts';
import { StepError } from '../errors.ts';
import { parseShownMap } from '../haproxy/parse-workers.ts';
import { askWorkers } from '../haproxy/workers.ts';
import { drainKey, hostKey, type Instances, parseSingleMap } from './parse.ts';
import { proxyPaths, proxyService } from './paths.ts';
import { type MapFile, planRepairs, type Repair } from './plan.ts';
import { ignoreAbsence, readInstances, readMap } from './registry.ts';

type CompareContext = Pick<BaseContext, 'paths' | 'signal'>;

export type MapValues = { instances: Instances; drain: 'on' | 'off'; host: string | undefined };

export function listMapFiles({ paths }: Pick<CompareContext, 'paths'>, values: MapValues): MapFile[] {
  const { instancesMap, flagsMap, hostMap } = proxyPaths(paths);
  const ports = [...values.instances].map(([name, port]) => [name, String(port)] as const);
  return [
    { path: instancesMap, entries: new Map(ports) },
    { path: flagsMap, entries: new Map([[drainKey, values.drain]]) },
    { path: hostMap, entries: new Map(values.host === undefined ? [] : [[hostKey, values.host]]) },
  ];
}

/** As the files say now. */
export async function readMapValues(ctx: Pick<CompareContext, 'paths'>): Promise<MapValues> {
  const { flagsMap, hostMap } = proxyPaths(ctx.paths);
  const [instances, flag, host] = [
    await readInstances(ctx),
    await readSingle(flagsMap, drainKey),
    await readSingle(hostMap, hostKey),
  ];
  return { instances, drain: flag === 'on' ? 'on' : 'off', host };
}

export type ComparedWorker = { pid: number; repairs: readonly Repair[] };

/** Undefined where no HAProxy runs. Throws UnavailableError, and StepError where it has other maps. */
export async function compareWorkers(
  { paths, signal }: CompareContext,
  files: readonly MapFile[],
): Promise<ComparedWorker[] | undefined> {
  // An empty map has an empty answer; the last one tells it from that of a worker that ends.
  const commands = [...files.map(({ path }) => `show map ${path}`), 'show version'];
  const options = { signal, service: proxyService };
  const workers = await askWorkers(proxyPaths(paths).masterSocket, commands, options).catch(ignoreAbsence);
  return workers?.map(({ pid, answers }) => ({ pid, repairs: planWorker(files, { pid, answers }) }));
}

function planWorker(
  files: readonly MapFile[],
  { pid, answers }: { pid: number; answers: readonly string[] },
): Repair[] {
  return files.flatMap((file, index) => {
    const answer = answers[index] ?? '';
    if (answer.startsWith('Unknown map')) {
      const why = `it does not use ${JSON.stringify(file.path)}: has it another file than systemd/reeve-proxy.cfg?`;
      throw new StepError(`cannot compare worker ${pid} of HAProxy: ${why}`);
    }
    return planRepairs(file, parseShownMap(answer));
  });
}

export async function readSingle(path: string, key: string): Promise<string | undefined> {
  return parseSingleMap((await readMap(path)) ?? '', key);
}
