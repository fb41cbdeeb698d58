// A node's machine in a temporary directory, without an engine: reeve as it is shipped, and fake programs first on PATH.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { inject } from 'vitest';
import { type Program, type ProgramEnd, startProcess } from './programs.ts';
import { makeTempDir } from './temp.ts';

const fakes = join(import.meta.dirname, '../fixtures/bin');

export type Machine = {
  readonly root: string;
  readonly stateDir: string;
  readonly locksDir: string;
  readonly storeDir: string;
  start(words: readonly string[], env?: Readonly<Record<string, string>>): Program;
  /** The same as the last words of another program: `time`. */
  startUnder(argv: readonly [string, ...string[]], words: readonly string[]): Program;
  reeve(...words: string[]): Promise<ProgramEnd>;
  /** Writes a file below the root; answers its path. */
  write(name: string, content: unknown): string;
  /** A file below the root as text; undefined where there is none. */
  read(name: string): string | undefined;
  json(name: string): unknown;
};

/** `config` is reeve.yaml as a value; `store` in the section `cluster` is filled in. */
export function makeMachine(
  config: Readonly<Record<string, unknown>> = { cluster: { nodeId: 'web-1' } },
): Machine {
  const root = makeTempDir();
  const storeDir = join(root, 'store');
  mkdirSync(storeDir);
  const write = (name: string, content: unknown): string => {
    const path = join(root, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
    return path;
  };
  const { cluster } = config as { cluster?: object };
  const filled = cluster === undefined ? {} : { cluster: { store: `file://${storeDir}`, ...cluster } };
  // JSON is YAML.
  const configFile = write('etc/reeve.yaml', { ...config, ...filled });
  const environment = {
    HOME: root,
    PATH: `${fakes}:${process.env['PATH']}`,
    REEVE_CONFIG: configFile,
    REEVE_STATE: join(root, 'state'),
    REEVE_RUN: join(root, 'run'),
    REEVE_CACHE: join(root, 'cache'),
    // Never what an agent on this machine may have left.
    LAUNCHPAD_STATE: join(root, 'launch-pad/state.json'),
  };
  const startQuiet = (
    argv: readonly [string, ...string[]],
    env: Readonly<Record<string, string>>,
  ): Program => {
    const [file, ...args] = argv;
    const program = startProcess(file, args, { ...environment, ...env });
    program.child.stdin.end();
    return program;
  };
  const start: Machine['start'] = (words, env = {}) => startQuiet([inject('reeveBin'), ...words], env);
  const read = (name: string): string | undefined => {
    const path = join(root, name);
    return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  };
  return {
    ...{
      root,
      storeDir,
      stateDir: join(root, 'state'),
      locksDir: join(root, 'run/locks'),
      start,
      write,
      read,
    },
    startUnder: (argv, words) => startQuiet([...argv, inject('reeveBin'), ...words], {}),
    reeve: (...words) => start(words).ended,
    json: (name) => JSON.parse(read(name) ?? 'null'),
  };
}
