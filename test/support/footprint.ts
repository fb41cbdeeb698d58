// What one run of reeve costs in things that can be counted, and are the same on every machine: modules of our own that
// are loaded, programs started, files written, requests to the engine and to the store. Seen by strace and a proxy.
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { inject } from 'vitest';
import type { EngineProxy } from './engine-proxy.ts';
import type { TestNode } from './node.ts';
import { startProcess } from './programs.ts';

export type Footprint = {
  modules: number;
  kilobytes: number;
  /** Node's own modules: some cost as much as all of ours. */
  builtins: number;
  /** Besides reeve's own shell and Node.js. */
  programs: string[];
  /** Below the node's directory, its cache left out. */
  writes: string[];
  engine: string[];
  storeReads: string[];
  storeWrites: string[];
};

/** What is looked at: the directories of a node, or of an edge, and what else it has in its environment. */
export type Place = Pick<TestNode, 'root' | 'nodeId' | 'storeDir' | 'stateDir'> & {
  env?: Readonly<Record<string, string>>;
};

type Call = { name: string; paths: string[]; line: string };

const traced = 'execve,open,openat,creat,rename,renameat,renameat2,mkdir,mkdirat,unlink,unlinkat,rmdir';

/** Runs the command under strace. Throws if it ends with another status than 0. */
export async function takeFootprint(
  node: Place,
  proxy: Pick<EngineProxy, 'lines'>,
  words: readonly string[],
): Promise<Footprint> {
  const file = join(node.root, 'trace');
  const before = proxy.lines.length;
  const counter = writeCounter(node);
  const strace = ['-f', '-qq', '-s', '4096', '-o', file, '-e', `trace=${traced}`];
  const env = { ...environmentOf(node), ...node.env, NODE_OPTIONS: `--require=${counter.program}` };
  const end = await startProcess('strace', [...strace, inject('reeveBin'), ...words], env).ended;
  if (end.status !== 0) throw new Error(`reeve ${words.join(' ')} ended with ${end.status}:\n${end.stderr}`);
  const calls = readCalls(readFileSync(file, 'utf8'));
  const builtins = Number(readFileSync(counter.answer, 'utf8'));
  return { ...describeCalls(calls, node), builtins, engine: proxy.lines.slice(before).map(withoutIds) };
}

/** A program to be loaded before reeve, which counts in the end. Below the cache, which is not looked at. */
function writeCounter({ root }: Place): { program: string; answer: string } {
  const program = join(root, 'cache/count-builtins.cjs');
  const answer = join(root, 'cache/builtins');
  mkdirSync(join(root, 'cache'), { recursive: true });
  const count = "process.moduleLoadList.filter((name) => name.startsWith('NativeModule ')).length";
  const write = `require('node:fs').writeFileSync(${JSON.stringify(answer)}, String(${count}))`;
  writeFileSync(program, `process.on('exit', () => ${write});\n`);
  return { program, answer };
}

/** What makes a process use the node's directories, as `makeNode` has it. */
export function environmentOf({ root, stateDir }: Place): Record<string, string> {
  return {
    REEVE_CONFIG: join(root, 'etc/reeve.yaml'),
    REEVE_STATE: stateDir,
    REEVE_RUN: join(root, 'run'),
    REEVE_CACHE: join(root, 'cache'),
    LAUNCHPAD_STATE: join(root, 'launch-pad/state.json'),
  };
}

function describeCalls(calls: readonly Call[], node: Place): Omit<Footprint, 'engine' | 'builtins'> {
  const dist = join(inject('reeveBin'), '../../dist');
  const modules = unique(
    calls.flatMap(({ paths }) => paths).filter((path) => path.startsWith(`${dist}/`) && path.endsWith('.js')),
  );
  const sizeBytes = modules.reduce((sum, path) => sum + statSync(path).size, 0);
  const programs = calls.filter(({ name }) => name === 'execve').flatMap(({ paths }) => paths.slice(0, 1));
  const written = calls.flatMap(writtenPaths);
  const read = calls.filter(({ name, line }) => /^open/.test(name) && !isForWriting(line));
  const below = (paths: readonly string[], directory: string): string[] =>
    unique(
      paths.filter((path) => path.startsWith(`${directory}/`)).map((path) => relative(directory, path)),
    ).map((path) =>
      withoutIds(path.replaceAll(node.nodeId, 'NODE').replace(/\/[\d-]+T[\d-]+Z\.json$/, '/STAMP.json')),
    );
  return {
    modules: modules.length,
    kilobytes: Math.ceil(sizeBytes / 1000),
    programs: unique(programs.map((path) => basename(path))).filter(
      (name) => name !== 'reeve' && name !== 'node',
    ),
    writes: below(written, node.root).filter((path) => !/^(cache|store)\//.test(path)),
    storeReads: below(
      read.flatMap(({ paths }) => paths),
      node.storeDir,
    ).filter((path) => path.startsWith('nodes/') && !isStaging(path)),
    storeWrites: below(written, node.storeDir).filter((path) => path.startsWith('nodes/')),
  };
}

/** Of jobs, of their runs, of containers, and of the process and the run that ask. */
function withoutIds(text: string): string {
  return text
    .replace(/\b(Job|Run)[0-9A-Za-z]{16,}/g, (_, kind: string) => kind.toUpperCase())
    .replace(/\b[0-9a-f]{64}\b/g, 'CONTAINER')
    .replace(/\.(answer|pipe)-[\w-]+/, '.$1-ID')
    .replace(/^(run\/\w+)\.\d+$/, '$1.PID');
}

/** A staging file counts as what it becomes. */
function writtenPaths({ name, paths, line }: Call): string[] {
  if (name === 'execve') return [];
  const changed = /^open/.test(name) && !isForWriting(line) ? [] : paths;
  return (/^rename/.test(name) ? changed.slice(-1) : changed).filter((path) => !isStaging(path));
}

function isForWriting(line: string): boolean {
  return /O_WRONLY|O_RDWR|O_CREAT/.test(line);
}

function isStaging(path: string): boolean {
  return /\.tmp(\.\d+)?$/.test(path);
}

const cut = '<unfinished ...>';

/** Whole lines: where two threads are at it, strace tells the end of a call on a line of its own. */
function joinLines(trace: string): string[] {
  const begun = new Map<string, string>();
  const lines = trace.split('\n').flatMap((line) => {
    const [, thread = '', rest = ''] = /^(\d+) +(?:<\.\.\. \w+ resumed>)?(.*)$/.exec(line) ?? [];
    const whole = line.includes(' resumed>') ? `${begun.get(thread) ?? ''}${rest}` : line;
    begun.delete(thread);
    if (!whole.endsWith(cut)) return [whole];
    begun.set(thread, whole.slice(0, -cut.length));
    return [];
  });
  return [...lines, ...begun.values()];
}

function readCalls(trace: string): Call[] {
  return joinLines(trace).flatMap((line) => {
    const name = /^\d+ +(\w+)\(/.exec(line)?.[1];
    // A request for what is not there is one, too; a program or a directory that could not be is none.
    if (name === undefined || (!/^open/.test(name) && / = -1 /.test(line))) return [];
    return [{ name, paths: [...line.matchAll(/"([^"]*)"/g)].map(([, path]) => path as string), line }];
  });
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)].sort();
}
