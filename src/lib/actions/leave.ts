// How entries leave the inbox. What is refused is kept for people as long as it is little: whoever fills the inbox must not fill the
// disk.
import { chmod, lstat, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { maxActionBytes } from '../deploy-runner/names.ts';
import { describeError, systemErrorCode } from '../errors.ts';
import { ensureDirectory } from '../state/directory.ts';
import { fileError } from '../state/file-error.ts';
import { fileStamp } from '../time.ts';
import { readEntry } from './entry.ts';
import type { MarkerContext } from './markers.ts';
import type { EntryName } from './open.ts';
import { actionPlaces } from './places.ts';

const mostKept = 200;
const keptMs = 30 * 24 * 60 * 60_000;

/** What is done with. Nothing is followed. */
export async function removeEntry(name: EntryName): Promise<void> {
  try {
    await rm(name.path, { recursive: true, force: true });
  } catch (error) {
    throw fileError('remove', name.path.toString(), error);
  }
}

/** False where another file has come in its place meanwhile: a later approval of the same id is not done with. */
export async function isStill(name: EntryName, key: string): Promise<boolean> {
  const entry = await readEntry(name);
  return entry !== undefined && entry.kind !== 'foreign' && entry.key === key;
}

export type Quarantine = {
  /** What is not worth keeping is removed. */
  setAside(name: EntryName): Promise<void>;
};

/** What has been there for a month goes. */
export async function openQuarantine({ paths, clock, log }: MarkerContext): Promise<Quarantine> {
  const { quarantine } = actionPlaces(paths);
  await ensureDirectory(quarantine).catch((error: unknown) => {
    throw fileError('make', quarantine, error);
  });
  let count = await sweep(quarantine, clock.now(), log);
  let number = 0;
  return {
    setAside: async (name) => {
      if (count >= mostKept || !(await isWorthKeeping(name))) return await removeEntry(name);
      number += 1;
      const label = `${fileStamp(clock.now())}-${process.pid}-${number}-${plainName(name)}`;
      try {
        await rename(name.path, join(quarantine, label));
        count += 1;
      } catch (error) {
        if (systemErrorCode(error) !== 'ENOENT') throw fileError('move', name.path.toString(), error);
      }
    },
  };
}

/** How many are left. What cannot be removed stays, and keeps nothing else from its work. */
async function sweep(quarantine: string, now: Date, log: MarkerContext['log']): Promise<number> {
  let count = 0;
  const names = await readdir(quarantine).catch((error: unknown) => {
    throw fileError('read', quarantine, error);
  });
  for (const name of names) {
    const path = join(quarantine, name);
    const about = await lstat(path).catch(() => undefined);
    // When it came here, as nothing but the move has changed it since.
    const isOld = about !== undefined && now.getTime() - about.ctimeMs > keptMs;
    const isGone = isOld && (await removeOld(path, log));
    if (!isGone) count += 1;
  }
  return count;
}

async function removeOld(path: string, log: MarkerContext['log']): Promise<boolean> {
  try {
    await rm(path, { recursive: true, force: true });
    return true;
  } catch (error) {
    log.warning(describeError(fileError('remove', path, error)));
    return false;
  }
}

/** Pipes and devices have nothing to be seen, and what is large or deep is not for keeping. */
async function isWorthKeeping({ path }: EntryName): Promise<boolean> {
  const about = await lstat(path).catch(() => undefined);
  if (about === undefined || about.isSymbolicLink()) return about !== undefined;
  if (!about.isFile() || about.size > maxActionBytes) return false;
  await chmod(path, 0o600).catch(() => {});
  return true;
}

function plainName({ text }: EntryName): string {
  return text.replaceAll(/[^A-Za-z0-9._-]/g, '_').slice(0, 100);
}
