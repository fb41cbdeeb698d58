// A named lock of reeve: the kernel lock on `<locksDir>/<name>.lock`, with the holder written into the file for people.
// The files stay, but for those of single things that are gone for good: there would be ever more of them.
import { closeSync, existsSync, ftruncateSync, mkdirSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { BusyError, ConfigError } from '../errors.ts';
import { fileError } from '../state/file-error.ts';
import type { Clock } from '../time.ts';
import { takeFlock } from './descriptor.ts';
import { describeHolder, findHolders, type LockHolder, readHolder, renderHolder } from './holder.ts';
import type { LockName } from './names.ts';

export type LockRequest = {
  /** How long to wait for another holder; 0, the default, is not at all. */
  waitMs?: number;
  /** As a person would type it: `reeve reconcile`. */
  command: string;
  runId: string;
  clock: Clock;
  signal?: AbortSignal;
};

export type Lock = {
  readonly name: LockName;
  readonly path: string;
  /** Gives it back; a second call does nothing. */
  release(): void;
  /** Gives it back with its file. While it is still held, so that whoever gets it next sees that the file is another one. */
  retire(): void;
};

/** Throws BusyError, with the holder named, if another holds it; anything else that fails is never told as busy. */
export async function acquireLock(locksDir: string, name: LockName, request: LockRequest): Promise<Lock> {
  ensureLocksDirectory(locksDir);
  const path = lockPath(locksDir, name);
  let fd = await takeFlock(path, request);
  if (fd === undefined) {
    const holder = await findHolder(path, request.clock);
    // Whoever had it has let go of it meanwhile.
    if (holder === undefined) fd = await takeFlock(path, { ...request, waitMs: 0 });
    if (fd === undefined) {
      const named = holder ?? (await findHolder(path, request.clock));
      throw new BusyError(name, describeHolder(named, request.clock.now()));
    }
  }
  writeHolder(fd, {
    pid: process.pid,
    command: request.command,
    runId: request.runId,
    since: request.clock.now().toISOString(),
  });
  let held = true;
  const release = (): void => {
    if (!held) return;
    held = false;
    writeHolder(fd, undefined);
    closeSync(fd);
  };
  const retire = (): void => {
    if (held) rmSync(path, { force: true });
    release();
  };
  return { name, path, release, retire };
}

export function lockPath(locksDir: string, name: LockName): string {
  return join(locksDir, `${name}.lock`);
}

/** Below /run the directory is systemd-tmpfiles' to make, with its group and mode; elsewhere it is ours. */
function ensureLocksDirectory(locksDir: string): void {
  if (locksDir.startsWith('/run/')) {
    if (existsSync(locksDir)) return;
    throw new ConfigError(
      `cannot use lock directory ${JSON.stringify(locksDir)}: it is missing; run systemd-tmpfiles --create`,
      { code: 'ENOENT' },
    );
  }
  try {
    mkdirSync(locksDir, { recursive: true, mode: 0o750 });
  } catch (error) {
    throw fileError('make lock directory', locksDir, error);
  }
}

/** The text is for people only, so a full /run does not cost us the lock. */
function writeHolder(fd: number, holder: LockHolder | undefined): void {
  try {
    ftruncateSync(fd, 0);
    if (holder !== undefined) writeSync(fd, renderHolder(holder), 0);
  } catch {
    // Then the holder is found through /proc.
  }
}

/** A holder that has just taken the lock needs a moment to write its name. */
async function findHolder(path: string, clock: Clock): Promise<LockHolder | undefined> {
  const holder = readHolder(path);
  if (holder !== undefined) return holder;
  await clock.sleep(20);
  return readHolder(path) ?? findHolders([path]).holders.get(path);
}
