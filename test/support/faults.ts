// Makes the Nth system call of one kind fail, or kills the process at it, by attaching strace to a program that is
// ready to act: library code is included, and counting begins with the act. N grows until a run passes untouched.
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { choosePoints } from './points.ts';
import { type ProgramEnd, startNodeProgram, startProcess } from './programs.ts';

export type Fault = {
  /** Names of one call on the platforms we know; strace skips those that are unknown here. */
  calls: string;
  /** strace's words: `error=ENOSPC`, `signal=KILL`, `retval=100`. */
  effect: string;
};

/** `calls`: how many of them the thread made that made the most. */
export type FaultRun = { fault: Fault; n: number; hit: boolean; calls: number; end: ProgramEnd };

export const fileCalls = {
  open: '?open,openat',
  write: 'pwrite64',
  append: 'write',
  sync: 'fsync',
  rename: '?rename,?renameat,renameat2',
  link: '?link,linkat',
  unlink: '?unlink,unlinkat',
  mode: '?chmod,?fchmodat,fchmod',
  truncate: 'ftruncate',
  flock: 'flock',
  connect: 'connect',
} as const;

/** More calls of one kind than any act of ours makes: then the loop has gone wrong. */
const maxRuns = 60;

/**
 * Runs `programs/fault-target.ts ACT DIR` once for each N, in a copy of the template, and hands each run to
 * `check`, which is the first in this process to write there: so it stands for the next run. Returns how often the
 * fault was hit.
 */
export async function injectFaults(
  act: string,
  fault: Fault,
  template: string,
  check: (directory: string, run: FaultRun) => Promise<void>,
): Promise<number> {
  for (let n = 1; n <= maxRuns; n += 1) {
    const directory = await mkdtemp(join(tmpdir(), 'reeve-fault-'));
    try {
      await cp(template, directory, { recursive: true });
      const run = await runWithFault(act, directory, fault, n);
      await check(directory, run);
      if (!run.hit) return n - 1;
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  }
  throw new Error(`${fault.calls} was still being hit after ${maxRuns} runs`);
}

async function runWithFault(act: string, directory: string, fault: Fault, n: number): Promise<FaultRun> {
  // One worker thread: strace counts the calls of each thread on its own.
  const target = startNodeProgram('fault-target.ts', [act, directory], { UV_THREADPOOL_SIZE: '1' });
  await target.waitFor('ready');
  const log = `${directory}.strace`;
  const injection = `inject=${fault.calls}:${fault.effect}:when=${n}`;
  const tracer = startProcess('strace', [
    ...['-f', '-p', String(target.pid), '-o', log],
    ...['-e', `trace=${fault.calls}`, '-e', injection],
  ]);
  await tracer.waitFor('attached');
  target.tell('go');
  const end = await target.ended;
  await tracer.ended;
  const told = await readFile(log, 'utf8');
  await rm(log);
  return { fault, n, ...readCalls(told), end };
}

/**
 * Runs a program from its start with the fault at the Nth call that one of its threads makes. Only calls that no start of a
 * program makes can be counted on.
 */
export async function runUnderFault(
  command: readonly string[],
  environment: Readonly<Record<string, string>>,
  fault: Fault,
  n: number,
): Promise<FaultRun> {
  const directory = await mkdtemp(join(tmpdir(), 'reeve-fault-'));
  const log = join(directory, 'strace');
  try {
    const injection = `inject=${fault.calls}:${fault.effect}:when=${n}`;
    const strace = ['-f', '-qq', '-o', log, '-e', `trace=${fault.calls}`, '-e', injection];
    // One worker thread: strace counts the calls of each thread on its own.
    const env = { ...environment, UV_THREADPOOL_SIZE: '1', NODE_DISABLE_COMPILE_CACHE: '1' };
    const end = await startProcess('strace', [...strace, ...command], env).ended;
    return { fault, n, ...readCalls(await readFile(log, 'utf8')), end };
  } finally {
    await rm(directory, { recursive: true });
  }
}

function readCalls(log: string): Pick<FaultRun, 'hit' | 'calls'> {
  const counts = new Map<string, number>();
  // Its end, where a call is told in two parts, is no call of its own.
  for (const [, thread = ''] of log.matchAll(/^(\d+) +\w+\(/gm)) {
    counts.set(thread, (counts.get(thread) ?? 0) + 1);
  }
  return { hit: /\(INJECTED\)|killed by SIGKILL/.test(log), calls: Math.max(0, ...counts.values()) };
}

/** Beyond what any run of ours makes. */
const never = 10_000;

/**
 * An attempt runs something with a fault at its Nth call, and checks what comes of it. The first is left alone, and tells how many
 * calls there are; then some of those, or all of them, are hit. Returns how many were, and how many there are.
 */
export async function attemptAtCalls(
  attempt: (n: number) => Promise<FaultRun>,
): Promise<{ hits: number; calls: number }> {
  const { hit, calls } = await attempt(never);
  if (hit) throw new Error(`it was hit at call ${never}`);
  let hits = 0;
  for (const n of choosePoints(calls)) if ((await attempt(n)).hit) hits += 1;
  return { hits, calls };
}
