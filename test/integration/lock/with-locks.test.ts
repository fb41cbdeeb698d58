import { AsyncLocalStorage } from 'node:async_hooks';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { BusyError, InternalError } from '../../../src/lib/errors.ts';
import { listLocks } from '../../../src/lib/lock/list-locks.ts';
import { type LockContext, withLock, withLocks } from '../../../src/lib/lock/with-locks.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { makeTempDir } from '../../support/temp.ts';

let ctx: LockContext;
beforeEach(() => {
  ctx = {
    paths: { locksDir: makeTempDir() },
    command: 'reconcile',
    runId: 'run',
    clock: systemClock,
    signal: new AbortController().signal,
  };
});

// Runs the work as a flow of its own that holds nothing yet.
const beginFlow = AsyncLocalStorage.snapshot();

const heldNames = async (): Promise<string[]> =>
  (await listLocks(ctx.paths.locksDir)).filter(({ held }) => held).map(({ name }) => name);

describe('withLocks', () => {
  it('holds all its locks during the work and none after it', async () => {
    const during = await withLocks(ctx, ['status', 'service@b@a', 'reconcile', 'service@a@b'], heldNames);
    expect(during).toEqual(['reconcile', 'service@a@b', 'service@b@a', 'status']);
    expect(await heldNames()).toEqual([]);
  });

  it('gives them back when the work throws', async () => {
    const fault = new Error('no engine');
    await expect(withLock(ctx, 'reconcile', () => Promise.reject(fault))).rejects.toBe(fault);
    expect(await heldNames()).toEqual([]);
  });

  it('holds none when one of them is busy, and does no work', async () => {
    let worked = false;
    await withLock(ctx, 'service@b@b', async () => {
      const rival = beginFlow(() =>
        withLocks(ctx, ['service@a@a', 'service@b@b'], async () => {
          worked = true;
        }),
      );
      await expect(rival).rejects.toBeInstanceOf(BusyError);
      expect(await heldNames()).toEqual(['service@b@b']);
    });
    expect(worked).toBe(false);
  });

  it('takes locks from outer to inner', async () => {
    const during = await withLock(ctx, 'reconcile', () =>
      withLock(ctx, 'service@a@a', () =>
        withLock(ctx, 'service@a@b', () => withLock(ctx, 'proxy', heldNames)),
      ),
    );
    expect(during).toEqual(['reconcile', 'service@a@a', 'service@a@b', 'proxy']);
  });

  it.each([
    ['status', 'proxy'],
    ['service@a@b', 'service@a@a'],
    ['service@a@a', 'reconcile'],
    ['reconcile', 'backup'],
    ['proxy', 'proxy'],
  ] as const)('refuses, inside %s, %s as a bug of ours', async (outer, inner) => {
    const nested = withLock(ctx, outer, () => withLock(ctx, inner, () => Promise.resolve()));
    await expect(nested).rejects.toEqual(
      new InternalError(`lock ${inner} was asked for inside lock ${outer}`, { code: 'lock-order' }),
    );
    expect(await heldNames()).toEqual([]);
  });

  it('lets flows side by side hold services in any order', async () => {
    await withLock(ctx, 'reconcile', async () => {
      let release = (): void => {};
      const parked = new Promise<void>((resolve) => {
        release = resolve;
      });
      const one = withLock(ctx, 'service@z@z', () => parked);
      await withLock(ctx, 'service@a@a', () => Promise.resolve());
      release();
      await one;
    });
  });
});

describe('reeve lock', () => {
  const runUnderLock = (options: object, argv: string[]): ReturnType<typeof spawnSync> => {
    const module = join(import.meta.dirname, '../../../src/commands/lock.ts');
    const time = join(import.meta.dirname, '../../../src/lib/time.ts');
    const script = `
      const { run } = await import(${JSON.stringify(module)});
      const { systemClock } = await import(${JSON.stringify(time)});
      const base = { paths: { locksDir: ${JSON.stringify(ctx.paths.locksDir)} }, command: 'lock', runId: 'r', clock: systemClock, signal: new AbortController().signal };
      try {
        const outcome = await run({ base, args: ${JSON.stringify(argv)}, options: ${JSON.stringify(options)} });
        process.exitCode = outcome.exitCode;
      } catch (error) { console.error(error.message); process.exitCode = error.exitCode; }`;
    return spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
      input: 'typed',
    });
  };

  it('runs the command under the lock with its own stdin, and hands on its status', () => {
    const path = join(ctx.paths.locksDir, 'reconcile.lock');
    const command = ['sh', '-c', `cat; flock -n -E 75 ${path} true; echo " $?"; exit 9`];
    const end = runUnderLock({}, ['reconcile', ...command]);
    expect([end.stdout, end.stderr, end.status]).toEqual(['typed 75\n', '', 9]);
  });

  it('names the program to others, but not its arguments, which may hold secrets', () => {
    const path = join(ctx.paths.locksDir, 'proxy.lock');
    const end = runUnderLock({}, ['proxy', 'sh', '-c', `cat ${path} # hunter22`]);
    expect(JSON.parse(String(end.stdout))).toMatchObject({ command: 'reeve lock proxy -- sh' });
    expect(end.stdout).not.toContain('hunter22');
  });

  it('leaves stdout to the one JSON document with --json', () => {
    const end = runUnderLock({ json: true }, ['proxy', 'echo', 'hello']);
    expect([end.stdout, end.stderr, end.status]).toEqual(['', 'hello\n', 0]);
  });

  it('exits 128+n when a signal ended the command', () => {
    expect(runUnderLock({}, ['proxy', 'sh', '-c', 'kill -TERM $$']).status).toBe(143);
  });

  it('exits 75 and names the holder when the lock is busy', async () => {
    const end = await withLock(ctx, 'proxy', () => Promise.resolve(runUnderLock({}, ['proxy', 'true'])));
    expect(end.status).toBe(75);
    expect(end.stderr).toMatch(
      new RegExp(`^lock proxy is held by pid ${process.pid}, \`reeve reconcile\`, since `),
    );
  });

  it('refuses a name that is no lock and a missing command', () => {
    expect(runUnderLock({}, ['nonsense', 'true']).status).toBe(64);
    expect(runUnderLock({}, ['proxy']).status).toBe(64);
  });

  it('tells a program that is not there', () => {
    const end = runUnderLock({}, ['proxy', 'no-such-program']);
    expect([end.stderr, end.status]).toEqual(['cannot run "no-such-program": no such program\n', 1]);
  });
});
