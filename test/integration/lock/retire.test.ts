// The lock of something that is gone for good goes with its file, and excludes as well as before.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { expect, it } from 'vitest';
import { BusyError } from '../../../src/lib/errors.ts';
import { acquireLock, type LockRequest } from '../../../src/lib/lock/flock.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { makeTempDir } from '../../support/temp.ts';

const request: LockRequest = { command: 'reeve test', runId: 'test', clock: systemClock };
const shellFlock = (path: string): number | null =>
  spawnSync('flock', ['-n', '-E', '75', path, 'true']).status;

it('a lock that is retired is with one only of all that wait for it', async () => {
  const directory = makeTempDir();
  const lock = await acquireLock(directory, 'job@a', request);
  const waiting = ['one', 'two'].map(() => acquireLock(directory, 'job@a', { ...request, waitMs: 20_000 }));
  await expect(acquireLock(directory, 'job@a', request)).rejects.toThrow(BusyError);
  lock.retire();
  const first = await Promise.race(waiting);
  expect(shellFlock(first.path)).toBe(75);
  first.release();
  const second = (await Promise.all(waiting)).find((one) => one !== first);
  expect(shellFlock(first.path)).toBe(75);
  second?.release();
  expect(shellFlock(first.path)).toBe(0);
});

it('a lock that was given back before it is retired leaves the file to whoever has it now', async () => {
  const directory = makeTempDir();
  const lock = await acquireLock(directory, 'job@a', request);
  lock.release();
  const next = await acquireLock(directory, 'job@a', request);
  lock.retire();
  expect(shellFlock(next.path)).toBe(75);
  next.retire();
  expect(existsSync(next.path)).toBe(false);
});
