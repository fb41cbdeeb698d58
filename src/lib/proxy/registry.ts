// The registry: the map file that HAProxy starts from and that outlives every process of ours, but no boot. Written under
// the lock `proxy`, always before the running HAProxy is told: a start at any moment has it.
import { chmod, mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { BaseContext } from '../context.ts';
import { systemErrorCode, UnavailableError } from '../errors.ts';
import { parseShownMap } from '../haproxy/parse-workers.ts';
import { askWorkers } from '../haproxy/workers.ts';
import { withLock } from '../lock/with-locks.ts';
import { writeFileAtomic } from '../state/atomic-file.ts';
import { fileError } from '../state/file-error.ts';
import { type Instances, parseInstancesMap, renderInstancesMap } from './parse.ts';
import { proxyPaths, proxyService } from './paths.ts';

export type ProxyContext = Pick<BaseContext, 'paths' | 'signal' | 'log' | 'clock' | 'runId' | 'command'>;

/** Others hold it for milliseconds; a HAProxy that reloads may take seconds. */
const lockMs = 20_000;

export async function underProxyLock<T>(
  ctx: ProxyContext,
  work: () => Promise<T>,
  waitMs: number = lockMs,
): Promise<T> {
  return await withLock(ctx, 'proxy', work, { waitMs });
}

/** What somebody who only looks sees. */
export async function readInstances(ctx: Pick<ProxyContext, 'paths'>): Promise<Instances> {
  return parseInstancesMap((await readMap(proxyPaths(ctx.paths).instancesMap)) ?? '');
}

/**
 * What a writer begins with. Where the file is missing, somebody has removed it, or this is the first run: HAProxy, which is
 * as old as the boot at most, knows which, and is not told to forget what it serves.
 */
export async function loadInstances(ctx: Pick<ProxyContext, 'paths' | 'signal' | 'log'>): Promise<Instances> {
  const { instancesMap, masterSocket } = proxyPaths(ctx.paths);
  const text = await readMap(instancesMap);
  if (text !== undefined) return parseInstancesMap(text);
  const options = { signal: ctx.signal, service: proxyService };
  const commands = [`show map ${instancesMap}`, 'show version'];
  const workers = await askWorkers(masterSocket, commands, options).catch(ignoreAbsence);
  const shown = [...parseShownMap(workers?.[0]?.answers[0] ?? '')];
  const instances = parseInstancesMap(shown.map(([name, [entry]]) => `${name} ${entry?.value}`).join('\n'));
  if (instances.size > 0)
    ctx.log.warning(`the registry of the proxy was gone: taken from what HAProxy serves`);
  return instances;
}

export async function writeInstances(ctx: Pick<ProxyContext, 'paths'>, instances: Instances): Promise<void> {
  await writeMap(ctx, proxyPaths(ctx.paths).instancesMap, renderInstancesMap(instances));
}

/** Undefined where there is no such file. */
export async function readMap(path: string): Promise<string | undefined> {
  return await readFile(path, 'utf8').catch((error: unknown) => {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw fileError('read', path, error);
  });
}

/** HAProxy is another user, and looks for its maps here: all that is made on the way is open to read, whatever the umask. */
export async function writeMap(ctx: Pick<ProxyContext, 'paths'>, path: string, text: string): Promise<void> {
  const { directory } = proxyPaths(ctx.paths);
  try {
    const made = await mkdir(directory, { recursive: true });
    for (const one of made === undefined ? [] : listBetween(made, directory)) await chmod(one, 0o755);
  } catch (error) {
    throw fileError('make', directory, error);
  }
  await writeFileAtomic(path, text, { mode: 0o644 });
}

/** Both and what lies between them; `outer` is above `inner`, or the same. */
function listBetween(outer: string, inner: string): string[] {
  return inner === outer ? [inner] : [...listBetween(outer, dirname(inner)), inner];
}

/** Of an error about a HAProxy that was not told what our files say already. */
export const untold = 'untold';

/** `what` stands in the files: whoever is told that HAProxy does not answer is told that as well, and what brings it. */
export function tellUntold(what: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof UnavailableError)) throw error;
    throw new UnavailableError(
      `cannot tell HAProxy that ${what}: ${error.message}; \`reeve proxy sync\` brings it, or the next heartbeat`,
      { cause: error, code: untold },
    );
  };
}

/** A HAProxy that does not run reads the files when it starts: there is nobody to be told. */
export function ignoreAbsence(error: unknown): undefined {
  if (error instanceof UnavailableError && error.code === 'not-running') return undefined;
  throw error;
}
