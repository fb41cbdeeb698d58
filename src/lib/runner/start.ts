// Starting a command in its directory, as its user. What it is given counts only once it is that user: until then a loader or a
// search for programs would obey it as whoever we are.
import { type ChildProcess, spawn } from 'node:child_process';
import { stat } from 'node:fs/promises';
import type { Duplex } from 'node:stream';
import { waitUntil } from '../abort.ts';
import { describeError, systemErrorCode } from '../errors.ts';
import { waitForAnswer } from '../exec/answering.ts';
import type { Argv } from '../exec/run.ts';
import { signalGroup } from '../host/processes.ts';
import { type StageEnd, stageText } from './stage.ts';

export type CommandSpec = {
  argv: Argv | { shell: string };
  dir: string;
  /** All of it: nothing is inherited. */
  env: Readonly<Record<string, string>>;
  /** With the groups that the machine gives to it. Undefined: whoever we are. */
  user?: CommandUser;
};

type CommandUser = { uid: number; gid: number };

export type ProcessEnd = { kind: 'exited'; code: number } | { kind: 'signalled'; signal: NodeJS.Signals };

export type StartedCommand = {
  /** Of its group as well. */
  pid: number;
  ended: Promise<ProcessEnd>;
};

/** The reason in words where it cannot be started. Throws the signal's reason, with nothing left, where that comes first. */
export async function startCommand(
  spec: CommandSpec,
  fd: number,
  signal: AbortSignal,
): Promise<StartedCommand | string> {
  const [program, ...args] = 'shell' in spec.argv ? ['/bin/sh', '-c', spec.argv.shell] : spec.argv;
  const wanted = { program: program ?? '', args, dir: spec.dir, env: spec.env };
  if (spec.user !== undefined) return await startAsUser(wanted, spec.user, fd, signal);
  await waitForAnswer(spec.dir, signal);
  const code = await waitUntil(signal, () => lookAtDirectory(spec.dir));
  if (code !== undefined) return explainStart(wanted, { step: 'enter', code });
  return await spawnGroup([wanted.program, ...args], { ...wanted, cwd: spec.dir, stdio: ['ignore', fd, fd] });
}

/** Why it cannot be entered. */
async function lookAtDirectory(dir: string): Promise<string | undefined> {
  try {
    return (await stat(dir)).isDirectory() ? undefined : 'ENOTDIR';
  } catch (error) {
    return systemErrorCode(error) ?? describeError(error);
  }
}

type Wanted = {
  program: string;
  args: readonly string[];
  dir: string;
  env: Readonly<Record<string, string>>;
};

/** Of programs that run before the command is its user. */
const plainEnv = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };

/** Node.js changes the user itself only without any of its groups. */
async function startAsUser(
  wanted: Wanted,
  { uid, gid }: CommandUser,
  fd: number,
  signal: AbortSignal,
): Promise<StartedCommand | string> {
  const become = ['/usr/bin/setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--init-groups', '--'] as const;
  const argv = [...become, process.execPath, '--no-warnings', '-e', stageText] as const;
  const started = await spawnGroup(argv, { env: plainEnv, cwd: '/', stdio: ['ignore', fd, fd, 'pipe'] });
  if (typeof started === 'string') return started;
  try {
    const said = await waitUntil(signal, () => tellStage(started.child.stdio[3] as Duplex, wanted));
    if (said === 'begins') return started;
    if (said !== undefined) return explainStart(wanted, said);
    return `cannot become the user ${uid}`;
  } catch (error) {
    signalGroup(started.pid, 'SIGKILL');
    throw error;
  }
}

/** Undefined where it has ended without a word. */
async function tellStage(stage: Duplex, wanted: Wanted): Promise<StageEnd | undefined> {
  return await new Promise((resolve) => {
    let said = '';
    stage.setEncoding('utf8');
    stage.on('data', (text: string) => {
      said += text;
    });
    // It may end before it has read anything.
    stage.on('error', () => {});
    stage.once('close', () => {
      // The last of its words counts.
      const last = said.trimEnd().split('\n').at(-1) ?? '';
      resolve(last === '' ? undefined : (JSON.parse(last) as StageEnd));
    });
    stage.end(JSON.stringify(wanted));
  });
}

type SpawnOptions = {
  cwd: string;
  env: Readonly<Record<string, string>>;
  stdio: ('ignore' | 'pipe' | number)[];
};

async function spawnGroup(
  [program, ...args]: Argv,
  options: SpawnOptions,
): Promise<(StartedCommand & { child: ChildProcess }) | string> {
  try {
    const child = spawn(program, args, { ...options, detached: true });
    // Before anything else is waited for: it may end at once.
    const ended = waitForExit(child);
    return await new Promise((resolve) => {
      child.once('spawn', () => resolve({ pid: child.pid as number, ended, child }));
      child.once('error', (error) => resolve(explainRun(program, codeOf(error))));
    });
  } catch (error) {
    return explainRun(program, codeOf(error));
  }
}

function waitForExit(child: ChildProcess): Promise<ProcessEnd> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      resolve(signal === null ? { kind: 'exited', code: code ?? 0 } : { kind: 'signalled', signal });
    });
  });
}

function codeOf(error: unknown): string {
  return systemErrorCode(error) ?? describeError(error);
}

function explainStart({ dir, program }: Wanted, end: Exclude<StageEnd, 'begins'>): string {
  if (end.step === 'run') return explainRun(program, end.code);
  const why = enterErrors[end.code] ?? pathErrors[end.code] ?? end.code;
  return `cannot enter ${JSON.stringify(dir)}: ${why}`;
}

const pathErrors: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  ENAMETOOLONG: 'its name is too long',
  ELOOP: 'its links lead in a circle',
  EIO: 'its disk cannot be read',
  ENOMEM: 'there is no memory left',
};

const enterErrors: Readonly<Record<string, string>> = {
  ENOENT: 'no such directory',
  ENOTDIR: 'it, or what stands before it, is no directory',
};

const startErrors: Readonly<Record<string, string>> = {
  ENOENT: 'no such program, or nothing to run it with',
  ENOTDIR: 'what stands before it is no directory',
  EAGAIN: 'there are too many processes',
  ETXTBSY: 'it is being written',
  E2BIG: 'its arguments and its environment are too long',
  ENOEXEC: 'it is no program',
};

function explainRun(program: string, code: string): string {
  return `cannot run ${JSON.stringify(program)}: ${startErrors[code] ?? pathErrors[code] ?? code}`;
}
