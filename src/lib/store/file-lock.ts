// The file store's writer lock: held for the comparison and the rename, never while content is being written.
import { closeSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { systemErrorCode, UnavailableError } from '../errors.ts';
import { takeFlock } from '../lock/descriptor.ts';
import { fileError } from '../state/file-error.ts';

export type StoreLock = { run<T>(work: () => Promise<T>): Promise<T> };

/** Holders need milliseconds. Whoever waits this long has met a stopped process or a broken file system. */
const maxWaitMs = 30_000;

export function createStoreLock(root: string, signal: AbortSignal | undefined): StoreLock {
  const directory = join(root, '.locks');
  const path = join(directory, 'store.lock');
  const options = { waitMs: maxWaitMs, ...(signal === undefined ? {} : { signal }) };
  // Writers of one process queue here, so that a hundred of them do not wait in a hundred flock processes.
  let tail: Promise<unknown> = Promise.resolve();

  const runLocked = async <T>(work: () => Promise<T>): Promise<T> => {
    await makeDirectory(directory);
    const fd = await takeFlock(path, options);
    if (fd === undefined) {
      throw new UnavailableError(
        `cannot write to store ${JSON.stringify(root)}: its lock has been held for 30s`,
      );
    }
    try {
      return await work();
    } finally {
      closeSync(fd);
    }
  };

  return {
    run: (work) => {
      const mine = tail.then(() => runLocked(work));
      tail = mine.catch(() => {});
      return mine;
    },
  };
}

/** Not its parents: a store that has vanished must not be made anew. */
async function makeDirectory(directory: string): Promise<void> {
  try {
    await mkdir(directory, { mode: 0o700 });
  } catch (error) {
    if (systemErrorCode(error) !== 'EEXIST') throw fileError('make', directory, error);
  }
}
