// A directory that others may swap for a link while we work in it: held by its handle, and its entries are reached through that. So what
// is written, renamed or removed is in the very directory that was opened, whatever its name leads to by then.
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError, systemErrorCode } from '../errors.ts';
import { fileError } from './file-error.ts';

export type HeldDirectory = {
  /** For messages. */
  readonly path: string;
  readonly handle: FileHandle;
  /** The path of an entry, or of the directory itself, by the handle; for other programs as well. */
  at(name?: string): string;
};

/**
 * Walks down from the directory `top`; none on the way, nor `top` itself, may be a link. What `top` lies in is trusted. Throws StepError
 * `ENOENT` where one is missing that `make` does not make, and ConfigError where one is no directory.
 */
export async function withDirectory<T>(
  top: string,
  names: readonly string[],
  work: (directory: HeldDirectory) => Promise<T>,
  make?: (parent: HeldDirectory, name: string) => Promise<void>,
): Promise<T> {
  let held = await holdDirectory(top, top);
  try {
    for (const name of names) {
      if (make !== undefined) await make(held, name);
      const next = await holdDirectory(held.at(name), join(held.path, name));
      await held.handle.close();
      held = next;
    }
    return await work(held);
  } finally {
    await held.handle.close();
  }
}

/** Whoever calls it closes the handle. */
export async function holdDirectory(path: string, shown: string): Promise<HeldDirectory> {
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
  try {
    const handle = await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    const self = `/proc/${process.pid}/fd/${handle.fd}`;
    return { path: shown, handle, at: (name) => (name === undefined ? `${self}/` : `${self}/${name}`) };
  } catch (error) {
    const code = systemErrorCode(error);
    if (code !== 'ENOTDIR' && code !== 'ELOOP') throw fileError('open', shown, error);
    const message = `cannot open ${JSON.stringify(shown)}: it is a symbolic link, or no directory: nothing is followed there`;
    throw new ConfigError(message, { cause: error, code: 'not-a-directory' });
  }
}
