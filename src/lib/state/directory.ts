// Directories below the state directory or a store: made when missing, and durable once they are used.
import { constants } from 'node:fs';
import { mkdir, open, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { systemErrorCode } from '../errors.ts';

/** Makes the directory and its parents (0700). What was made survives a power cut. */
export async function ensureDirectory(path: string): Promise<void> {
  const firstMade = await mkdir(path, { recursive: true, mode: 0o700 }).catch(async (error: unknown) => {
    // Node calls a file system that is read-only ENOENT here; without `recursive` it says what it is.
    if (systemErrorCode(error) === 'ENOENT') await mkdir(await findMissing(path), { mode: 0o700 });
    throw error;
  });
  if (firstMade === undefined) return;
  for (let made = resolve(path); made.length >= firstMade.length; made = dirname(made)) {
    await syncDirectory(dirname(made));
  }
}

/** The first directory on the way to the path that is not there. */
async function findMissing(path: string): Promise<string> {
  let missing = resolve(path);
  while ((await stat(dirname(missing)).catch(() => undefined)) === undefined) missing = dirname(missing);
  return missing;
}

/** Makes renames, links and removals in the directory survive a power cut. */
export async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.sync();
  } catch (error) {
    // Some file systems (FUSE, vfat mounts) cannot sync a directory and say so with EINVAL: nothing more can be done there.
    if (systemErrorCode(error) !== 'EINVAL') throw error;
  } finally {
    await handle.close();
  }
}
