// The one runner of commands that others ask for: a program or a shell in a process group of its own, with a deadline, a
// way to end it, and bounded memory for what it prints. Knows no concern.
import { type ChildProcess, spawn } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeError, systemErrorCode } from '../errors.ts';
import type { Argv } from '../exec/run.ts';
import { type OutputPipe, openPipe } from './pipe.ts';
import { createRing, type Ring } from './ring.ts';

export type CommandSpec = {
  argv: Argv | { shell: string };
  dir: string;
  /** All of it: nothing is inherited. */
  env: Readonly<Record<string, string>>;
  /** With the groups that the machine gives to it. Undefined: whoever we are. */
  user?: { uid: number; gid: number };
};

export type RunOptions = {
  deadlineMs: number;
  /** Between SIGTERM and SIGKILL for the whole group; 0: SIGKILL at once. */
  killGraceMs: number;
  /** Ends the command as the deadline does. */
  signal: AbortSignal;
  /** Of stdout and stderr together the last bytes are kept. */
  maxOutputBytes: number;
  /** Where a pipe may have its name for a moment. */
  scratchDir: string;
  /** Right after the start; the group has the same number. */
  onStarted?(pid: number): void;
  /** Sees everything as it comes. Must not block: it is not waited for. */
  sink?(chunk: Uint8Array): void;
};

export type CommandEnd = (
  | { kind: 'exited'; code: number }
  | { kind: 'signalled'; signal: NodeJS.Signals }
  | { kind: 'deadline' }
  | { kind: 'cancelled' }
  | { kind: 'not-started'; message: string }
) & { output: CommandOutput };

/** `isCut`: the beginning is gone. */
export type CommandOutput = { bytes: Uint8Array; isCut: boolean };

/** What the command has left may hold the pipe for so long after its end; then it is ended as well. */
const pipeGraceMs = 5_000;
/** For what is in the pipe already. */
const drainMs = 100;
/** Until the kernel has ended what was killed, and somebody has taken note of it. */
const goneMs = 500;
const lookMs = 5;
/** A process that SIGKILL does not end hangs in the kernel: nobody waits for that. */
const unkillableMs = 10_000;

/** Nothing of its process group is left then. Throws only where no pipe can be made for it. */
export async function runCommand(spec: CommandSpec, options: RunOptions): Promise<CommandEnd> {
  const ring = createRing(options.maxOutputBytes);
  if (options.signal.aborted) return { kind: 'cancelled', output: ring.read() };
  const pipe = await openPipe(options.scratchDir);
  const closed = collect(pipe, ring, options);
  try {
    const child = await start(spec, pipe.writeFd);
    pipe.handOver();
    if (typeof child === 'string') return { kind: 'not-started', message: child, output: ring.read() };
    const pid = child.pid as number;
    options.onStarted?.(pid);
    const { how, stoppedAtMs } = await waitForEnd(child, options);
    // A shell is gone at once; what it had started may still be settling, for what is left of the grace.
    const leftMs =
      stoppedAtMs === undefined ? pipeGraceMs : stoppedAtMs + options.killGraceMs - performance.now();
    await within(Math.max(drainMs, leftMs), closed);
    await endGroup(pid);
    return { ...how, output: ring.read() };
  } finally {
    pipe.handOver();
    pipe.reader.destroy();
  }
}

function collect({ reader }: OutputPipe, ring: Ring, { sink }: RunOptions): Promise<void> {
  reader.on('data', (chunk: Buffer) => {
    ring.add(chunk);
    sink?.(chunk);
  });
  return new Promise((resolve) => {
    reader.once('close', () => resolve());
    reader.on('error', () => {});
  });
}

/** The reason in words where it cannot be started. */
async function start(spec: CommandSpec, fd: number): Promise<ChildProcess | string> {
  const { dir, env } = spec;
  const [program, ...args] = buildArgv(spec);
  const about = await stat(dir).catch((error: unknown) => systemErrorCode(error) ?? describeError(error));
  if (typeof about === 'string') return `cannot enter ${JSON.stringify(dir)}: ${about}`;
  if (!about.isDirectory()) return `cannot enter ${JSON.stringify(dir)}: it is no directory`;
  try {
    const child = spawn(program, args, { cwd: dir, env, detached: true, stdio: ['ignore', fd, fd] });
    return await new Promise((resolve) => {
      child.once('spawn', () => resolve(child));
      child.once('error', (error) => resolve(explainStart(program, error)));
    });
  } catch (error) {
    return explainStart(program, error);
  }
}

/** Node.js changes the user itself only without any of its groups. */
function buildArgv({ argv, user }: CommandSpec): Argv {
  const [program, ...args] = 'shell' in argv ? (['/bin/sh', '-c', argv.shell] as const) : argv;
  if (user === undefined) return [program, ...args];
  return [
    ...(['setpriv', `--reuid=${user.uid}`, `--regid=${user.gid}`, '--init-groups', '--'] as const),
    ...[program, ...args],
  ];
}

const startErrors: Readonly<Record<string, string>> = {
  ENOENT: 'no such program, or nothing to run it with',
  EACCES: 'permission denied',
  E2BIG: 'its arguments and its environment are too long',
  ENOEXEC: 'it is no program',
};

function explainStart(program: string, error: unknown): string {
  const code = systemErrorCode(error) ?? '';
  return `cannot run ${JSON.stringify(program)}: ${startErrors[code] ?? describeError(error)}`;
}

type How =
  | { kind: 'exited'; code: number }
  | { kind: 'signalled'; signal: NodeJS.Signals }
  | { kind: Reason };
type Reason = 'deadline' | 'cancelled';

/** `stoppedAtMs`: when it was told to end, where it was. */
type End = { how: How; stoppedAtMs: number | undefined };

async function waitForEnd(child: ChildProcess, options: RunOptions): Promise<End> {
  const pid = child.pid as number;
  const timers: NodeJS.Timeout[] = [];
  let reason: Reason | undefined;
  let stoppedAtMs: number | undefined;
  return await new Promise<End>((resolve) => {
    const finish = (how: How): void => {
      for (const timer of timers) clearTimeout(timer);
      options.signal.removeEventListener('abort', onAbort);
      resolve({ how, stoppedAtMs });
    };
    const kill = (why: Reason): void => {
      signalGroup(pid, 'SIGKILL');
      timers.push(setTimeout(() => finish({ kind: why }), unkillableMs));
    };
    const end = (why: Reason): void => {
      if (reason !== undefined) return;
      reason = why;
      stoppedAtMs = performance.now();
      if (options.killGraceMs > 0) {
        signalGroup(pid, 'SIGTERM');
        timers.push(setTimeout(() => kill(why), options.killGraceMs));
      } else kill(why);
    };
    const onAbort = (): void => end('cancelled');
    timers.push(setTimeout(() => end('deadline'), options.deadlineMs));
    child.once('exit', (code, signal) => {
      if (reason !== undefined) finish({ kind: reason });
      else if (signal !== null) finish({ kind: 'signalled', signal });
      else finish({ kind: 'exited', code: code ?? 0 });
    });
    if (options.signal.aborted) onAbort();
    else options.signal.addEventListener('abort', onAbort, { once: true });
  });
}

/** False where nothing is left of it: it has its number as long as one of it is. */
function signalGroup(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(-pid, signal);
    return true;
  } catch {
    return false;
  }
}

async function endGroup(pid: number): Promise<void> {
  const lastMs = performance.now() + goneMs;
  while (signalGroup(pid, 'SIGKILL') && performance.now() < lastMs) await sleep(lookMs);
}

async function within(ms: number, end: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([end, late]);
  clearTimeout(timer);
}
