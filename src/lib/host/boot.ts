// Which boot this is: a mark in a directory that is gone at boot. The kernel's own id is another one in a sandbox than outside, where
// a container has put its own in its place.
import { randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Paths } from '../config/paths.ts';
import { systemErrorCode } from '../errors.ts';
import { fileError } from '../state/file-error.ts';

/** Made by whoever asks first. */
export async function requireBootId(paths: Pick<Paths, 'runDir'>): Promise<string> {
  const known = await findBootId(paths);
  if (known !== undefined) return known;
  const path = bootPath(paths);
  const id = randomUUID();
  const staged = `${path}.${id}`;
  try {
    await mkdir(paths.runDir, { recursive: true, mode: 0o755 });
    await writeFile(staged, `${id}\n`, { mode: 0o644 });
    // Of many at once one makes it, and it is whole.
    await link(staged, path).catch((error: unknown) => {
      if (systemErrorCode(error) !== 'EEXIST') throw error;
    });
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    throw fileError('write', path, error);
  } finally {
    await rm(staged, { force: true });
  }
}

/** Undefined where nobody has asked since the boot: then no command has begun since. */
export async function findBootId(paths: Pick<Paths, 'runDir'>): Promise<string | undefined> {
  const path = bootPath(paths);
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw fileError('read', path, error);
  }
}

function bootPath({ runDir }: Pick<Paths, 'runDir'>): string {
  return join(runDir, 'boot');
}
