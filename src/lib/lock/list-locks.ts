// All lock files with their holders, for `lock list`, status and doctor.
import { closeSync, constants, openSync, readdirSync } from 'node:fs';
import { systemErrorCode } from '../errors.ts';
import { fileError } from '../state/file-error.ts';
import { probeFlock } from './descriptor.ts';
import { lockPath } from './flock.ts';
import { findHolders, type LockHolder, readHolder } from './holder.ts';
import { compareLockNames, isLockName, type LockName } from './names.ts';

export type LockState = { name: LockName; held: boolean; holder?: LockHolder };

/**
 * In the order of taking. Looks through /proc, which disturbs nobody; only where a process cannot be looked into is a
 * file that seems free tried with a shared lock, for the two milliseconds that flock(1) takes.
 */
export async function listLocks(locksDir: string): Promise<LockState[]> {
  return await readLocks(locksDir, listLockNames(locksDir));
}

/** One of them; free where its file is not there yet. */
export async function isLockHeld(locksDir: string, name: LockName): Promise<boolean> {
  if (!listLockNames(locksDir).includes(name)) return false;
  const [state] = await readLocks(locksDir, [name]);
  return state?.held === true;
}

/** Those of them that somebody holds. */
export async function listHeldLocks(
  locksDir: string,
  names: readonly LockName[],
): Promise<ReadonlySet<LockName>> {
  if (names.length === 0) return new Set();
  const present = new Set(listLockNames(locksDir));
  const states = await readLocks(
    locksDir,
    names.filter((name) => present.has(name)),
  );
  return new Set(states.filter(({ held }) => held).map(({ name }) => name));
}

async function readLocks(locksDir: string, names: readonly LockName[]): Promise<LockState[]> {
  const paths = names.map((name) => lockPath(locksDir, name));
  const scan = findHolders(paths);
  const states: LockState[] = [];
  for (const name of names) {
    const path = lockPath(locksDir, name);
    const found = scan.holders.get(path);
    const held = found !== undefined || (!scan.complete && (await isHeld(path)));
    const holder = held ? chooseHolder(readHolder(path), found) : undefined;
    states.push({ name, held, ...(holder === undefined ? {} : { holder }) });
  }
  return states;
}

/** The file's text knows more, but only the kernel knows who it is: a killed holder's text stays behind. */
function chooseHolder(
  written: LockHolder | undefined,
  found: LockHolder | undefined,
): LockHolder | undefined {
  if (found === undefined || written?.pid === found.pid) return written;
  return found;
}

function listLockNames(locksDir: string): LockName[] {
  try {
    return readdirSync(locksDir)
      .filter((file) => file.endsWith('.lock'))
      .map((file) => file.slice(0, -'.lock'.length))
      .filter(isLockName)
      .sort(compareLockNames);
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw fileError('read', locksDir, error);
  }
}

async function isHeld(path: string): Promise<boolean> {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    return !(await probeFlock(path, fd));
  } finally {
    closeSync(fd);
  }
}
