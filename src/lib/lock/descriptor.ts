// A kernel lock on a file: opened here, locked by flock(1) on the inherited descriptor, ours until it is closed or the
// process is gone, however it goes. Node opens close-on-exec, so no other child keeps it.
import { spawn } from 'node:child_process';
import { closeSync, constants, fstatSync, openSync, statSync } from 'node:fs';
import { childEnvironment } from '../config/environment.ts';
import { ConfigError, StepError, systemErrorCode } from '../errors.ts';
import { fileError } from '../state/file-error.ts';

export type FlockOptions = {
  /** 0: answer at once. */
  waitMs?: number;
  signal?: AbortSignal;
};

/** flock(1)'s exit status for "somebody else has it", apart from every failure of its own. */
const busyStatus = 75;

/** A lock file that keeps being replaced under us is somebody's cleaning script at work: say so instead of looping. */
const maxReplacements = 10;

/** The descriptor that holds the lock, or undefined if another has it. Everything else that goes wrong is thrown. */
export async function takeFlock(path: string, options: FlockOptions = {}): Promise<number | undefined> {
  const deadline = performance.now() + (options.waitMs ?? 0);
  for (let attempt = 0; attempt < maxReplacements; attempt += 1) {
    const fd = openLockFile(path);
    try {
      const waitMs = Math.max(0, deadline - performance.now());
      if (!(await runFlock(path, fd, { ...options, waitMs }))) {
        closeSync(fd);
        return undefined;
      }
      if (isStillAt(path, fd)) return fd;
    } catch (error) {
      closeSync(fd);
      throw error;
    }
    closeSync(fd);
  }
  throw new StepError(`cannot lock ${JSON.stringify(path)}: the file was replaced ${maxReplacements} times`);
}

/** True if nobody holds the lock exclusively. Takes a shared lock on the descriptor: close it at once. */
export async function probeFlock(path: string, fd: number): Promise<boolean> {
  return await runFlock(path, fd, { shared: true });
}

type FlockRun = FlockOptions & { shared?: boolean };

/** True if it holds now. The waiting is flock's own, bounded, and ends with us when the signal aborts. */
function runFlock(path: string, fd: number, options: FlockRun): Promise<boolean> {
  const mode = options.shared === true ? '-s' : '-x';
  const waitMs = Math.ceil(options.waitMs ?? 0);
  const wait = waitMs > 0 ? ['-w', String(waitMs / 1000)] : ['-n'];
  return new Promise((resolve, reject) => {
    const child = spawn('flock', [mode, ...wait, '-E', String(busyStatus), '3'], {
      stdio: ['ignore', 'ignore', 'pipe', fd],
      // Its own messages in English, and no locale files to read.
      env: { ...childEnvironment(), LC_ALL: 'C' },
    });
    let complaint = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      complaint = `${complaint}${chunk}`.slice(0, 500);
    });
    const stop = (): void => void child.kill('SIGKILL');
    options.signal?.addEventListener('abort', stop, { once: true });
    if (options.signal?.aborted === true) stop();
    child.once('error', (error) => {
      options.signal?.removeEventListener('abort', stop);
      reject(startError(path, error));
    });
    child.once('close', (status, killedBy) => {
      options.signal?.removeEventListener('abort', stop);
      if (status === 0) resolve(true);
      else if (status === busyStatus) resolve(false);
      else if (options.signal?.aborted === true)
        reject(lockError(path, 'interrupted while waiting', 'aborted'));
      else reject(lockError(path, complaint.trim() || `flock ended with ${status ?? killedBy}`, 'flock'));
    });
  });
}

function openLockFile(path: string): number {
  const { O_RDWR, O_CREAT, O_NOFOLLOW } = constants;
  try {
    return openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o660);
  } catch (error) {
    throw fileError('open lock file', path, error);
  }
}

/** A lock on a file that was deleted or replaced excludes nobody (tried: two holders). */
function isStillAt(path: string, fd: number): boolean {
  try {
    const held = fstatSync(fd, { bigint: true });
    const named = statSync(path, { bigint: true });
    return held.dev === named.dev && held.ino === named.ino;
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return false;
    throw fileError('check lock file', path, error);
  }
}

function startError(path: string, error: Error): Error {
  if (systemErrorCode(error) === 'ENOENT') {
    return new ConfigError(
      `cannot lock ${JSON.stringify(path)}: flock is not installed (package util-linux)`,
      {
        cause: error,
        code: 'flock-missing',
      },
    );
  }
  return fileError('lock', path, error);
}

function lockError(path: string, cause: string, code: string): StepError {
  return new StepError(`cannot lock ${JSON.stringify(path)}: ${cause}`, { code });
}
