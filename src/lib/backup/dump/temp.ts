// `dump-tmp/` below the state directory: dumps on their way to the store, in files that only root can read. Who holds the lock
// `backup` is alone in there, so that whatever lies there when a run begins is what a killed one has left.
import { constants } from 'node:fs';
import { chmod, lstat, open, readdir, rm, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Paths } from '../../config/paths.ts';
import { ConfigError, StepError } from '../../errors.ts';
import { ensureDirectory } from '../../state/directory.ts';
import { fileError } from '../../state/file-error.ts';
import { formatBytes } from '../bytes.ts';

export type DumpDirectory = {
  readonly path: string;
  /** A new file's path; nothing is made. */
  next(): string;
};

/** Makes it (0700), and removes what is left in there. Assumes the lock `backup`. */
export async function openDumpDirectory(
  { stateDir }: Pick<Paths, 'stateDir'>,
  runId: string,
): Promise<DumpDirectory> {
  const path = join(stateDir, 'dump-tmp');
  try {
    await ensureDirectory(path);
    if (!(await lstat(path)).isDirectory())
      throw new ConfigError(`cannot use ${JSON.stringify(path)}: it is no directory`);
    await chmod(path, 0o700);
    for (const name of await readdir(path)) await rm(join(path, name), { recursive: true, force: true });
  } catch (error) {
    throw fileError('use', path, error);
  }
  let count = 0;
  return {
    path,
    next: () => {
      count += 1;
      return join(path, `${runId}-${count}.part`);
    },
  };
}

/** So much stays free for everybody else's files. */
const reservedBytes = 8 * 1024 * 1024;
/** A dump may have grown by so much since the last one. */
const growth = 1.2;

/** What is written between two looks at what is left. */
const lookEveryBytes = 4 * 1024 * 1024;

/** Throws StepError (`ENOSPC`) where a dump like the last one would not fit. */
export async function requireSpace({ path }: DumpDirectory, lastBytes: number | null): Promise<void> {
  await requireFree(path, Math.ceil((lastBytes ?? 0) * growth) + reservedBytes);
}

async function requireFree(directory: string, wanted: number): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  const free = bavail * bsize;
  if (free >= wanted) return;
  throw new StepError(
    `ENOSPC: ${formatBytes(free)} are free in ${JSON.stringify(directory)}, and about ${formatBytes(wanted)} are needed`,
    { code: 'ENOSPC' },
  );
}

/**
 * Calls `fill` with a way to append. Throws StepError (`ENOSPC`) before it takes the last of the disk, which others write their
 * state to, and what the disk itself says in words of ours.
 */
export async function writeNewFile(
  path: string,
  fill: (append: (chunk: Uint8Array) => Promise<void>) => Promise<void>,
): Promise<void> {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const handle = await open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600).catch((error: unknown) => {
    throw fileError('write', path, error);
  });
  let at = 0;
  let lookAt = lookEveryBytes;
  const append = async (chunk: Uint8Array): Promise<void> => {
    if (at >= lookAt) {
      await requireFree(dirname(path), reservedBytes);
      lookAt = at + lookEveryBytes;
    }
    try {
      for (let done = 0; done < chunk.length; ) {
        const { bytesWritten } = await handle.write(chunk, done, chunk.length - done, at);
        done += bytesWritten;
        at += bytesWritten;
      }
    } catch (error) {
      throw fileError('write', path, error);
    }
  };
  try {
    await fill(append);
  } finally {
    await handle.close();
  }
}
