// The one runner of commands that others ask for: a program or a shell in a process group of its own, with a deadline, a
// way to end it, and bounded memory for what it prints. Knows no concern.
import { setTimeout as sleep } from 'node:timers/promises';
import { waitUntil } from '../abort.ts';
import { readStartTime, signalGroup } from '../host/processes.ts';
import { type KeptBytes, keepLastBytes, type LastBytes } from '../last-bytes.ts';
import { type OutputPipe, openPipe } from './pipe.ts';
import { type CommandSpec, type ProcessEnd, type StartedCommand, startCommand } from './start.ts';

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

export type CommandEnd = (ProcessEnd | { kind: StopReason } | { kind: 'not-started'; message: string }) & {
  output: KeptBytes;
};

type StopReason = 'deadline' | 'cancelled';

/** What the command has left may hold the pipe for so long after its end; then it is ended as well. */
const pipeGraceMs = 5_000;
/** For what is in the pipe already. */
const drainMs = 100;
/** Until the kernel has ended what was killed, and somebody has taken note of it. */
const goneMs = 500;
const lookMs = 5;
/** A process that SIGKILL does not end hangs in the kernel: nobody waits for that. */
const unkillableMs = 10_000;

/**
 * Nothing of its process group is left then; what has left the group, as a daemon does, is its unit's to end. Throws only where no
 * pipe can be made for it.
 */
export async function runCommand(spec: CommandSpec, options: RunOptions): Promise<CommandEnd> {
  const kept = keepLastBytes(options.maxOutputBytes);
  if (options.signal.aborted) return { kind: 'cancelled', output: kept.read() };
  const pipe = await openPipe(options.scratchDir);
  const closed = collect(pipe, kept, options);
  const stop = watchStop(options);
  try {
    const started = await startInTime(spec, pipe.writeFd, stop);
    pipe.handOver();
    if ('kind' in started) return { ...started, output: kept.read() };
    options.onStarted?.(started.pid);
    const end = await waitForEnd(started, stop, options.killGraceMs);
    // A shell is gone at once; what it had started may still be settling, for what is left of the grace.
    const stoppedAtMs = stop.atMs();
    const leftMs =
      stoppedAtMs === undefined ? pipeGraceMs : stoppedAtMs + options.killGraceMs - performance.now();
    await isOverWithin(Math.max(drainMs, leftMs), closed);
    await endGroup(started.pid);
    return { ...end, output: kept.read() };
  } finally {
    stop.clear();
    pipe.handOver();
    pipe.reader.destroy();
  }
}

function collect({ reader }: OutputPipe, kept: LastBytes, { sink }: RunOptions): Promise<void> {
  reader.on('data', (chunk: Buffer) => {
    kept.add(chunk);
    sink?.(chunk);
  });
  return new Promise((resolve) => {
    reader.once('close', () => resolve());
    reader.on('error', () => {});
  });
}

type StopWatch = {
  signal: AbortSignal;
  /** What came first. */
  reason(): StopReason;
  /** Undefined before it came. */
  atMs(): number | undefined;
  clear(): void;
};

/** Both ends that are not the command's own. */
function watchStop({ deadlineMs, signal }: RunOptions): StopWatch {
  const stopped = new AbortController();
  let first: { reason: StopReason; atMs: number } | undefined;
  const end = (reason: StopReason): void => {
    first ??= { reason, atMs: performance.now() };
    stopped.abort();
  };
  const cancel = (): void => end('cancelled');
  const timer = setTimeout(() => end('deadline'), deadlineMs);
  if (signal.aborted) cancel();
  else signal.addEventListener('abort', cancel, { once: true });
  return {
    signal: stopped.signal,
    reason: () => first?.reason ?? 'cancelled',
    atMs: () => first?.atMs,
    clear: () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', cancel);
    },
  };
}

type NotStarted = { kind: 'not-started'; message: string } | { kind: StopReason };

/** Its directory may be on a disk that does not answer. */
async function startInTime(
  spec: CommandSpec,
  fd: number,
  stop: StopWatch,
): Promise<StartedCommand | NotStarted> {
  try {
    const started = await startCommand(spec, fd, stop.signal);
    return typeof started === 'string' ? { kind: 'not-started', message: started } : started;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    return { kind: stop.reason() };
  }
}

async function waitForEnd(
  { pid, ended }: StartedCommand,
  stop: StopWatch,
  killGraceMs: number,
): Promise<ProcessEnd | { kind: StopReason }> {
  const end = await waitUntil(stop.signal, () => ended).catch((error: unknown) => {
    if (!stop.signal.aborted) throw error;
    return undefined;
  });
  if (end !== undefined) return end;
  if (killGraceMs > 0) {
    signalGroup(pid, 'SIGTERM');
    if (await isOverWithin(killGraceMs, ended)) return { kind: stop.reason() };
  }
  signalGroup(pid, 'SIGKILL');
  await isOverWithin(unkillableMs, ended);
  return { kind: stop.reason() };
}

/** Its leader is gone, or was killed with it. */
async function endGroup(pid: number): Promise<void> {
  const lastMs = performance.now() + goneMs;
  // As long as one of the group is there nobody gets its number: whoever has it now is a stranger, and so is a group of that number.
  const isOurs = (): boolean => readStartTime(pid) === undefined;
  while (isOurs() && signalGroup(pid, 'SIGKILL') && performance.now() < lastMs) await sleep(lookMs);
}

/** False where it takes longer. */
async function isOverWithin(ms: number, end: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const isOver = await Promise.race([end.then(() => true), late]);
  clearTimeout(timer);
  return isOver;
}
