// Locks among real processes: held, lost, waited for, and never told as busy when something else is wrong.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { BusyError } from '../../../src/lib/errors.ts';
import { acquireLock, type Lock, type LockRequest } from '../../../src/lib/lock/flock.ts';
import { listLocks } from '../../../src/lib/lock/list-locks.ts';
import type { LockName } from '../../../src/lib/lock/names.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { type Program, programPath, startNodeProgram, startProcess } from '../../support/programs.ts';
import { makeTempDir } from '../../support/temp.ts';

const request: LockRequest = { command: 'reeve test', runId: 'test', clock: systemClock };
const shellFlock = (path: string): number | null =>
  spawnSync('flock', ['-n', '-E', '75', path, 'true']).status;

describe('acquireLock', () => {
  it('excludes another process and names it', async () => {
    const directory = makeTempDir();
    const holder = await hold(directory, 'reconcile');
    const error = await acquireLock(directory, 'reconcile', request).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(BusyError);
    expect((error as BusyError).message).toMatch(
      new RegExp(
        `^lock reconcile is held by pid ${holder.pid}, \`reeve reconcile\`, since \\d\\d:\\d\\d:\\d\\d \\(.+ ago\\)$`,
      ),
    );
    expect((error as BusyError).exitCode).toBe(75);
  });

  it('excludes itself within one process', async () => {
    const directory = makeTempDir();
    await take(directory, 'reconcile');
    await expect(acquireLock(directory, 'reconcile', request)).rejects.toThrow(`held by pid ${process.pid}`);
  });

  it('excludes a runbook that uses flock(1), and is excluded by it', async () => {
    const directory = makeTempDir();
    const path = join(directory, 'edge.lock');
    const lock = await take(directory, 'edge');
    expect(shellFlock(path)).toBe(75);
    lock.release();
    expect(shellFlock(path)).toBe(0);
    const shell = startProcess('flock', [path, 'sh', '-c', 'echo holding; read line']);
    await shell.waitFor('holding');
    await expect(acquireLock(directory, 'edge', request)).rejects.toThrow(
      `lock edge is held by pid ${shell.pid}, \`flock\``,
    );
    shell.tell('end');
    await shell.ended;
  });

  it('is free the moment its holder is killed, whatever the holder has started (R40, O58)', async () => {
    const directory = makeTempDir();
    const holder = await hold(directory, 'deploy-action');
    holder.tell('child');
    await holder.waitFor('child ');
    holder.child.kill('SIGKILL');
    const { stdout } = await holder.ended;
    const sleeper = Number(/child (\d+)/.exec(stdout)?.[1]);
    onTestFinished(() => void process.kill(sleeper, 'SIGKILL'));
    expect(process.kill(sleeper, 0)).toBe(true);
    await take(directory, 'deploy-action');
  });

  it('is not taken twice by two who find a dead holder at the same moment (O56)', async () => {
    const directory = makeTempDir();
    const dead = await hold(directory, 'claim');
    dead.child.kill('SIGKILL');
    await dead.ended;
    const rivals = Array.from({ length: 6 }, () => startNodeProgram('hold-lock.ts', [directory, 'claim']));
    const firsts = await Promise.all(rivals.map((rival) => firstWordOf(rival)));
    expect(firsts.sort()).toEqual([
      'BusyError',
      'BusyError',
      'BusyError',
      'BusyError',
      'BusyError',
      'holding',
    ]);
    for (const rival of rivals) rival.tell('end');
    await Promise.all(rivals.map((rival) => rival.ended));
  });

  it('waits for a holder that ends, and no longer than it was told', async () => {
    const directory = makeTempDir();
    const holder = await hold(directory, 'backup');
    await expect(acquireLock(directory, 'backup', { ...request, waitMs: 100 })).rejects.toBeInstanceOf(
      BusyError,
    );
    const waiting = acquireLock(directory, 'backup', { ...request, waitMs: 60_000 });
    holder.tell('end');
    (await waiting).release();
  });

  it('stops waiting when it is told to stop, which is not busy', async () => {
    const directory = makeTempDir();
    await take(directory, 'backup');
    const stop = new AbortController();
    const waiting = acquireLock(directory, 'backup', { ...request, waitMs: 60_000, signal: stop.signal });
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ name: 'StepError', code: 'aborted' });
  });

  it('does not believe a lock on a file that was replaced while it waited (O47, O59)', async () => {
    const directory = makeTempDir();
    const path = join(directory, 'install.lock');
    const holder = await hold(directory, 'install');
    const waiting = acquireLock(directory, 'install', { ...request, waitMs: 60_000 });
    await waiterOn(path);
    unlinkSync(path);
    writeFileSync(path, '');
    holder.tell('end');
    const lock = await waiting;
    expect(shellFlock(path)).toBe(75);
    lock.release();
  });

  it('never deletes its file, and leaves no holder text behind', async () => {
    const directory = makeTempDir();
    const lock = await take(directory, 'logs');
    const before = statSync(lock.path).ino;
    expect(JSON.parse(readFileSync(lock.path, 'utf8'))).toMatchObject({
      pid: process.pid,
      command: 'reeve test',
      runId: 'test',
    });
    lock.release();
    lock.release();
    expect([statSync(lock.path).ino, readFileSync(lock.path, 'utf8')]).toEqual([before, '']);
  });

  it('makes its directory, closed to others, where it is not systemd-tmpfiles that does', async () => {
    const directory = join(makeTempDir(), 'run', 'locks');
    await take(directory, 'proxy');
    expect(statSync(directory).mode & 0o007).toBe(0);
  });
});

describe('what goes wrong with a lock is never told as busy (O61)', () => {
  it('a missing directory below /run', async () => {
    const error = await acquireLock('/run/reeve-test-missing/locks', 'edge', request).catch(
      (e: unknown) => e,
    );
    expect(error).toMatchObject({
      name: 'ConfigError',
      code: 'ENOENT',
      message:
        'cannot use lock directory "/run/reeve-test-missing/locks": it is missing; run systemd-tmpfiles --create',
    });
  });

  it('a file that another user may not open', () => {
    const directory = makeTempDir();
    chmodSync(directory, 0o755);
    writeFileSync(join(directory, 'edge.lock'), '');
    chmodSync(join(directory, 'edge.lock'), 0);
    const seen = runAsNobody(directory, 'edge');
    expect(seen).toBe(
      `ConfigError cannot open lock file "${directory}/edge.lock": EACCES: permission denied\n`,
    );
  });

  it('a directory in the place of the file', async () => {
    const directory = makeTempDir();
    mkdirSync(join(directory, 'edge.lock'));
    await expect(acquireLock(directory, 'edge', request)).rejects.toMatchObject({
      name: 'ConfigError',
      code: 'EISDIR',
    });
  });

  it('a read-only file system', () => {
    const directory = makeTempDir();
    const script = `mount -t tmpfs -o ro tmpfs ${directory} && exec ${process.execPath} ${programPath('hold-lock.ts')} ${directory} edge`;
    const { stdout } = spawnSync('unshare', ['-m', 'sh', '-c', script], { encoding: 'utf8', input: '' });
    expect(stdout).toBe(
      `ConfigError cannot open lock file "${directory}/edge.lock": EROFS: read-only file system\n`,
    );
  });

  it('flock that is not installed', () => {
    const directory = makeTempDir();
    const { stdout } = spawnSync(process.execPath, [programPath('hold-lock.ts'), directory, 'edge'], {
      encoding: 'utf8',
      env: { PATH: directory },
      input: '',
    });
    expect(stdout).toBe(
      `ConfigError cannot lock "${directory}/edge.lock": flock is not installed (package util-linux)\n`,
    );
  });
});

describe('listLocks', () => {
  it('tells held from free in the order of taking, with the holder', async () => {
    const directory = makeTempDir();
    const holder = await hold(directory, 'service@blog@web');
    (await take(directory, 'status')).release();
    (await take(directory, 'reconcile')).release();
    writeFileSync(join(directory, 'notes.txt'), '');
    expect(await listLocks(directory)).toEqual([
      { name: 'reconcile', held: false },
      {
        name: 'service@blog@web',
        held: true,
        holder: {
          pid: holder.pid,
          command: 'reeve service@blog@web',
          runId: 'held',
          since: expect.stringMatching(/^\d{4}-/) as string,
        },
      },
      { name: 'status', held: false },
    ]);
  });

  it('names who really holds a lock where a killed holder has left its text', async () => {
    const directory = makeTempDir();
    const path = join(directory, 'edge.lock');
    writeFileSync(path, JSON.stringify({ pid: process.pid, command: 'reeve edge' }));
    const shell = startProcess('flock', [path, 'sh', '-c', 'echo holding; read line']);
    await shell.waitFor('holding');
    const [state] = await listLocks(directory);
    expect(state?.holder?.pid).toBe(shell.pid);
    shell.tell('end');
    await shell.ended;
  });

  it('is empty where no lock has been taken', async () => {
    expect(await listLocks(join(makeTempDir(), 'none'))).toEqual([]);
  });

  it('sees a held lock also as a user who cannot look into its holder', async () => {
    const directory = makeTempDir();
    chmodSync(directory, 0o755);
    const lock = await take(directory, 'edge');
    chmodSync(lock.path, 0o644);
    (await take(directory, 'claim')).release();
    chmodSync(join(directory, 'claim.lock'), 0o644);
    const list = `import(${JSON.stringify(programPath('../../../src/lib/lock/list-locks.ts'))}).then(async (m) => console.log(JSON.stringify(await m.listLocks(${JSON.stringify(directory)}))))`;
    const { stdout } = spawnSync(process.execPath, ['-e', list], {
      encoding: 'utf8',
      uid: 65534,
      gid: 65534,
    });
    expect(
      (JSON.parse(stdout) as { name: string; held: boolean }[]).map(({ name, held }) => ({ name, held })),
    ).toEqual([
      { name: 'claim', held: false },
      { name: 'edge', held: true },
    ]);
  });
});

async function hold(directory: string, name: LockName): Promise<Program> {
  const program = startNodeProgram('hold-lock.ts', [directory, name]);
  onTestFinished(() => void program.child.kill('SIGKILL'));
  await program.waitFor('holding');
  return program;
}

async function take(directory: string, name: LockName): Promise<Lock> {
  const lock = await acquireLock(directory, name, request);
  onTestFinished(() => lock.release());
  return lock;
}

async function firstWordOf(program: Program): Promise<string> {
  return await Promise.race([
    program.waitFor('holding').then(() => 'holding'),
    program.waitFor('BusyError').then(() => 'BusyError'),
  ]);
}

/** Until a flock process waits on the file. */
async function waiterOn(path: string): Promise<void> {
  const inode = String(statSync(path).ino);
  for (;;) {
    const waits = readFileSync('/proc/locks', 'utf8')
      .split('\n')
      .some((line) => line.includes('->') && line.includes(`:${inode} `));
    if (waits) return;
    await systemClock.sleep(5);
  }
}

function runAsNobody(directory: string, name: string): string {
  const { stdout } = spawnSync(process.execPath, [programPath('hold-lock.ts'), directory, name], {
    encoding: 'utf8',
    uid: 65534,
    gid: 65534,
    input: '',
  });
  return stdout;
}
