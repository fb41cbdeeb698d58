// Runs other programs: never through a shell, with a small environment, a deadline for the whole process group and
// bounded memory for what they print. The one place that calls execa, which is loaded only when a program is run.
import type { Readable } from 'node:stream';
import { childEnvironment } from '../config/environment.ts';
import { CommandError } from '../errors.ts';
import { signalGroup } from '../host/processes.ts';
import { decodeKept, keepLastBytes, type LastBytes } from '../last-bytes.ts';
import { formatDuration } from '../time.ts';
import { type Redact, redactNothing } from './redact.ts';

export type ProgramOptions = {
  /** Added to the small environment that every program gets. */
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  /** Written to its stdin; without it stdin is /dev/null. */
  input?: string | Uint8Array | Readable;
  /** The whole process group gets SIGTERM then, and SIGKILL when the grace is over. */
  timeoutMs: number;
  killGraceMs?: number;
  signal?: AbortSignal;
  /** Of each of stdout and stderr the last bytes are kept. */
  maxOutputBytes?: number;
  /** Exit statuses that are not a failure. */
  okStatuses?: readonly number[];
  /** For all text that ends up in an error. */
  redact?: Redact;
  uid?: number;
  gid?: number;
};

export type ProgramResult = {
  status: number;
  stdout: string;
  stderr: string;
  /** True if the beginning of stdout was dropped. */
  stdoutCut: boolean;
  durationMs: number;
};

export type Argv = readonly [program: string, ...args: string[]];

const defaultOutputBytes = 1024 * 1024;
const defaultGraceMs = 5_000;
/** Enough of a failure's output for a person, in one message. */
const lastLinesCount = 20;

/** Throws CommandError, with code `timeout`, `aborted`, `status`, `signal` or the system's code if it did not start. */
export async function runProgram(argv: Argv, options: ProgramOptions): Promise<ProgramResult> {
  const program = await startProgram(argv, options);
  const stdout = keepLastBytes(options.maxOutputBytes ?? defaultOutputBytes);
  program.stdout.on('data', (chunk: Buffer) => stdout.add(chunk));
  return await settle(program, stdout);
}

/**
 * Its stdout as a stream, without a limit. Ends normally only if the program did: a failure is thrown to the reader
 * after the last chunk, and a reader that stops early ends the program.
 */
export async function* streamProgram(argv: Argv, options: ProgramOptions): AsyncGenerator<Uint8Array> {
  const program = await startProgram(argv, options);
  let drained = false;
  try {
    for await (const chunk of program.stdout) yield chunk as Buffer;
    drained = true;
  } finally {
    if (!drained) program.kill();
    const end = settle(program, keepLastBytes(0));
    if (drained) await end;
    else await end.catch(() => {});
  }
}

type Running = Awaited<ReturnType<typeof startProgram>>;

async function startProgram(argv: Argv, options: ProgramOptions) {
  const { execa } = await import('execa');
  const { input, cwd, uid, gid, signal } = options;
  const [program, ...args] = argv;
  const startedAt = performance.now();
  const child = execa(program, args, {
    env: { ...childEnvironment(), ...options.env },
    extendEnv: false,
    ...(input === undefined ? { stdin: 'ignore' as const } : { input }),
    ...(cwd === undefined ? {} : { cwd }),
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
    ...(signal === undefined ? {} : { cancelSignal: signal }),
    timeout: options.timeoutMs,
    forceKillAfterDelay: options.killGraceMs ?? defaultGraceMs,
    killDescendants: true,
    buffer: false,
    encoding: 'buffer',
    reject: false,
  });
  const stderr = keepLastBytes(options.maxOutputBytes ?? defaultOutputBytes);
  child.stderr.on('data', (chunk: Buffer) => stderr.add(chunk));
  return {
    argv,
    options,
    startedAt,
    result: child,
    stdout: child.stdout,
    stderr,
    kill: () => child.kill(),
    pid: child.pid,
  };
}

async function settle(program: Running, stdout: LastBytes): Promise<ProgramResult> {
  const result = await program.result;
  // A descendant that ignores SIGTERM outlives its leader; the group's id stays taken as long as it does.
  if ((result.timedOut || result.isCanceled) && program.pid !== undefined)
    signalGroup(program.pid, 'SIGKILL');
  const { okStatuses = [0] } = program.options;
  const status = result.exitCode;
  if (status === undefined || result.timedOut || result.isCanceled || !okStatuses.includes(status)) {
    throw programError(program, result, stdout);
  }
  const said = stdout.read();
  return {
    status,
    stdout: decodeKept(said),
    stderr: decodeKept(program.stderr.read()),
    stdoutCut: said.isCut,
    durationMs: Math.round(performance.now() - program.startedAt),
  };
}

type Ended = Awaited<Running['result']>;

function programError(program: Running, ended: Ended, stdout: LastBytes): CommandError {
  const { redact = redactNothing } = program.options;
  const argv = program.argv.map(redact);
  const { code, cause } = explainEnd(program, ended);
  const lastLines = lastLinesOf(redact(decodeKept(program.stderr.read()) || decodeKept(stdout.read())));
  const detail = lastLines === '' ? '' : `: ${lastLines.split('\n').at(-1)}`;
  return new CommandError(
    `cannot run ${JSON.stringify(shorten(argv.join(' ')))}: ${redact(cause)}${detail}`,
    { argv, lastLines, ...(ended.exitCode === undefined ? {} : { status: ended.exitCode }) },
    { code },
  );
}

function explainEnd(program: Running, ended: Ended): { code: string; cause: string } {
  const { timeoutMs } = program.options;
  if (ended.timedOut) return { code: 'timeout', cause: `no end within ${formatDuration(timeoutMs)}` };
  if (ended.isCanceled) return { code: 'aborted', cause: 'interrupted' };
  if (ended.exitCode !== undefined) return { code: 'status', cause: `exit status ${ended.exitCode}` };
  if (ended.signal !== undefined) return { code: 'signal', cause: `ended by ${ended.signal}` };
  const code = ended.code ?? 'start';
  return {
    code,
    cause: code === 'ENOENT' ? 'no such program or directory' : (ended.originalMessage ?? code),
  };
}

function lastLinesOf(text: string): string {
  return text.trimEnd().split('\n').slice(-lastLinesCount).join('\n');
}

function shorten(text: string): string {
  return text.length <= 200 ? text : `${text.slice(0, 197)}...`;
}
