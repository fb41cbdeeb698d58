// Programs inside a container, by the docker CLI, which is made for streams. Values of the environment are in that of the CLI
// and never in its arguments; there is no terminal, which would alter bytes. Ending the CLI does not end the program: who
// starts one that can hang has to know a way to end it in there.
import {
  type Argv,
  type ProgramOptions,
  type ProgramResult,
  runProgram,
  streamProgram,
} from '../exec/run.ts';

export type ContainerProgram = {
  /** Path of the engine's socket. */
  socket: string;
  containerId: string;
  argv: Argv;
  env: Readonly<Record<string, string>>;
  /** The container's own user without it. */
  user?: string;
};

export type ContainerProgramOptions = Omit<ProgramOptions, 'env' | 'cwd' | 'uid' | 'gid'>;

/** Throws CommandError as `runProgram` does; the engine's own refusals come as statuses 125 to 127. */
export async function runInContainer(
  program: ContainerProgram,
  options: ContainerProgramOptions,
): Promise<ProgramResult> {
  return await runProgram(containerArgv(program, options), { ...options, env: program.env });
}

/** Its stdout, as `streamProgram`. */
export function streamFromContainer(
  program: ContainerProgram,
  options: ContainerProgramOptions,
): AsyncGenerator<Uint8Array> {
  return streamProgram(containerArgv(program, options), { ...options, env: program.env });
}

export function containerArgv(
  { socket, containerId, argv, env, user }: ContainerProgram,
  { input }: Pick<ContainerProgramOptions, 'input'> = {},
): Argv {
  const names = Object.keys(env).flatMap((name) => ['--env', name]);
  const stdin = input === undefined ? [] : ['--interactive'];
  const as = user === undefined ? [] : ['--user', user];
  return ['docker', '--host', `unix://${socket}`, 'exec', ...stdin, ...as, ...names, containerId, ...argv];
}

const askMs = 20_000;

/** By id or name; false also of one that is not there. Throws CommandError where the engine does not tell. */
export async function isContainerRunning(socket: string, container: string): Promise<boolean> {
  const list = ['container', 'ls', '--no-trunc', '--format', '{{.ID}} {{.Names}}'];
  const { stdout } = await runProgram(['docker', '--host', `unix://${socket}`, ...list], {
    timeoutMs: askMs,
  });
  return stdout.split(/\s/).includes(container);
}
