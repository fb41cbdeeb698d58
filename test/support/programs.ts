// Small programs in programs/, run from source in processes of their own: for what one process alone cannot show.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';

export type ProgramEnd = {
  status: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
};

export type Program = {
  readonly pid: number;
  readonly child: ChildProcessWithoutNullStreams;
  /** Resolves once its stdout contains the text; rejects if it ends before. */
  waitFor(text: string): Promise<void>;
  tell(line: string): void;
  readonly ended: Promise<ProgramEnd>;
};

export function programPath(name: string): string {
  return join(import.meta.dirname, 'programs', name);
}

/** Starts `programs/<name>` under the Node that runs the tests. */
export function startNodeProgram(
  name: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Program {
  return startProcess(process.execPath, [programPath(name), ...args], env);
}

export function startProcess(
  command: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Program {
  const child = spawn(command, args, { stdio: 'pipe', env: { ...process.env, ...env } });
  // A program that has ended does not read what we still tell it.
  child.stdin.on('error', () => {});
  const output = { stdout: '', stderr: '' };
  const watchers = new Set<() => void>();
  const collect = (stream: 'stdout' | 'stderr') => {
    // A chunk may end in the middle of a character.
    const decoder = new StringDecoder('utf8');
    return (chunk: Buffer): void => {
      output[stream] += decoder.write(chunk);
      for (const watcher of watchers) watcher();
    };
  };
  child.stdout.on('data', collect('stdout'));
  child.stderr.on('data', collect('stderr'));
  const ended = new Promise<ProgramEnd>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (status, signal) => resolve({ status, signal, ...output }));
  });
  return {
    pid: child.pid ?? 0,
    child,
    ended,
    tell: (line) => void child.stdin.write(`${line}\n`),
    waitFor: (text) =>
      new Promise((resolve, reject) => {
        const watcher = (): void => {
          if (output.stdout.includes(text) || output.stderr.includes(text)) resolve();
        };
        watchers.add(watcher);
        watcher();
        ended.then((end) => reject(new Error(`ended before ${text}: ${JSON.stringify(end)}`)), reject);
      }),
  };
}
