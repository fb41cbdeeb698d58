// An operator's machine with a store in a directory: reeve as it is shipped, in processes of its own.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { inject } from 'vitest';
import { renderDocument } from '../../src/lib/cluster/wire.ts';
import { type Program, type ProgramEnd, startProcess } from './programs.ts';
import { makeTempDir } from './temp.ts';

export type Operator = {
  readonly root: string;
  readonly environment: Record<string, string>;
  /** Starts reeve and comes back at once. */
  start(...args: string[]): Program;
  reeve(...args: string[]): Promise<ProgramEnd>;
  /** Writes a file below the root; answers its path. */
  write(name: string, text: string): string;
  /** A file of the store as text; undefined where there is none. */
  stored(key: string): string | undefined;
  store(key: string, document: unknown): void;
};

export type RunOptions = { clusterId?: string };

/** A store that knows the nodes by their registry entries. */
export function createOperator(
  nodes: readonly string[],
  { clusterId = 'default' }: RunOptions = {},
): Operator {
  const root = makeTempDir();
  const write = (name: string, text: string): string => {
    const path = join(root, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return path;
  };
  write('reeve.yaml', `cluster: { clusterId: ${clusterId}, store: "file://${join(root, 'store')}" }\n`);
  mkdirSync(join(root, 'store'));
  const environment = {
    REEVE_CONFIG: join(root, 'reeve.yaml'),
    REEVE_STATE: join(root, 'state'),
    REEVE_RUN: join(root, 'run'),
    REEVE_CACHE: join(root, 'cache'),
  };
  const start = (...args: string[]): Program => startProcess(inject('reeveBin'), args, environment);
  const store = (key: string, document: unknown): void =>
    void write(join('store', key), renderDocument(document));
  const prefix = clusterId === 'default' ? 'nodes' : `clusters/${clusterId}/nodes`;
  for (const node of nodes) store(`${prefix}/${node}/node.json`, { nodeId: node, role: 'app' });
  return {
    root,
    environment,
    start,
    reeve: (...args) => {
      const program = start(...args);
      program.child.stdin.end();
      return program.ended;
    },
    write,
    stored: (key) => {
      const path = join(root, 'store', key);
      return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
    },
    store,
  };
}
