// What is looked at before a job is asked for: it would fail at once where a disk is full or no engine answers, and another node
// could have had it.
import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { BaseContext } from '../context.ts';
import { UnavailableError } from '../errors.ts';

/** A workspace and an image's layers need some room; the records of a job next to nothing. */
const minFreeBytes = 1024 * 1024 * 1024;
const minStateBytes = 16 * 1024 * 1024;

export type JobRoots = { workspaceRoot: string; engineRoot: string; stateDir: string };

export function resolveJobRoots({ paths, overrides }: Pick<BaseContext, 'paths' | 'overrides'>): JobRoots {
  return {
    workspaceRoot: overrides.PLOYD_CACHE_HOME ?? `${paths.cacheDir}/jobs`,
    engineRoot: overrides.DOCKER_ROOT_DIR ?? '/var/lib/docker',
    stateDir: paths.stateDir,
  };
}

/** Throws UnavailableError, naming the directory that lacks room. */
export async function requireRoom({ workspaceRoot, engineRoot, stateDir }: JobRoots): Promise<void> {
  await requireFree(workspaceRoot, minFreeBytes);
  await requireFree(engineRoot, minFreeBytes);
  await requireFree(stateDir, minStateBytes);
}

async function requireFree(directory: string, minBytes: number): Promise<void> {
  const freeBytes = await readFree(directory);
  if (freeBytes === undefined || freeBytes >= minBytes) return;
  const mib = (bytes: number): string => `${Math.floor(bytes / (1024 * 1024))} MiB`;
  throw new UnavailableError(
    `cannot take a job: ${JSON.stringify(directory)} has ${mib(freeBytes)} free, and ${mib(minBytes)} are needed`,
    { code: 'no-room' },
  );
}

/** Of the nearest directory that is there. Undefined where it cannot be told, which is no reason to stop. */
async function readFree(directory: string): Promise<number | undefined> {
  for (let path = directory; ; path = dirname(path)) {
    try {
      const { bavail, bsize } = await statfs(path);
      return bavail * bsize;
    } catch {
      if (path === dirname(path)) return undefined;
    }
  }
}
