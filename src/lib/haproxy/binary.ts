// The installed HAProxy: whether there is one, and what it says to a file.
import { rm, writeFile } from 'node:fs/promises';
import type { ClusterConfig } from '../config/config.ts';
import { childEnvironment } from '../config/environment.ts';
import { CommandError, StepError } from '../errors.ts';
import { findProgram } from '../exec/find.ts';
import { fileError } from '../state/file-error.ts';

/** Whether HAProxy balances on an edge with this setting. */
export async function usesHaproxy(balancer: ClusterConfig['balancer']): Promise<boolean> {
  return balancer === 'haproxy' || (balancer === 'auto' && (await isHaproxyInstalled()));
}

export async function isHaproxyInstalled(searchPath?: string): Promise<boolean> {
  return (await findHaproxy(searchPath)) !== undefined;
}

/** As systemd's units would find it: Debian puts it where the PATH of people may not lead. */
async function findHaproxy(searchPath = childEnvironment()['PATH'] ?? ''): Promise<string | undefined> {
  return await findProgram('haproxy', `${searchPath}:/usr/sbin`);
}

/** Throws StepError, with what HAProxy has against it, unless a process would start from this text. */
export async function requireUsable(
  path: string,
  text: string,
  { signal }: { signal: AbortSignal },
): Promise<void> {
  // It reads files only. This one is nobody's but ours, and the edge's lock is held.
  const candidate = `${path}.candidate`;
  // Loaded here: a look that finds nothing to change runs no program.
  const { runProgram } = await import('../exec/run.ts');
  const program = (await findHaproxy()) ?? 'haproxy';
  try {
    await writeFile(candidate, text, { mode: 0o600 }).catch((error: unknown) => {
      throw fileError('write', candidate, error);
    });
    await runProgram([program, '-c', '-f', candidate], { timeoutMs: 60_000, signal });
  } catch (error) {
    if (!(error instanceof CommandError) || error.code !== 'status') throw error;
    const reason = error.lastLines.split('\n').find((line) => line.includes('[ALERT]')) ?? error.lastLines;
    const cause = reason.replace(/^.*?\[ALERT\][^:]*: */, '');
    throw new StepError(`cannot use a new configuration of HAProxy: ${cause}`, { cause: error });
  } finally {
    await rm(candidate, { force: true });
  }
}
