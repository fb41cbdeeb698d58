// The control host of a homelab in a temporary directory: the tree of actions and events, and `reeve` as whole processes.
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { inject } from 'vitest';
import { actionStates } from '../../src/lib/deploy-runner/layout.ts';
import { type Program, type ProgramEnd, startProcess } from './programs.ts';
import { makeTempDir } from './temp.ts';

export type ControlEnd = ProgramEnd & {
  // biome-ignore lint/suspicious/noExplicitAny: whatever a command answers
  json(): any;
};

export type ControlHost = {
  readonly dir: string;
  /** The directory `actions`. */
  readonly root: string;
  readonly environment: Readonly<Record<string, string>>;
  reeve(...words: string[]): Promise<ControlEnd>;
  start(words: readonly string[], under?: readonly string[]): Program & { readonly end: Promise<ControlEnd> };
  /** A file below `dir`. */
  write(name: string, content: string | Buffer | object): string;
  propose(action?: Readonly<Record<string, unknown>>): string;
  /** The states that have a file of this id, in the order of actionStates. */
  statesOf(id: string): string[];
  // biome-ignore lint/suspicious/noExplicitAny: the action's document
  read(state: string, id: string): any;
  bytes(name: string): Buffer;
  /** The names in a directory below `dir`, without those that begin with a dot unless `all`. */
  names(name: string, all?: boolean): string[];
  /** Puts back when it was dispatched, as if so much time had gone by. */
  age(id: string, seconds: number): void;
};

export const actionId = 'redeploy-web-1-blog';

export function makeControlHost(): ControlHost {
  const dir = makeTempDir();
  const root = join(dir, 'homelab/actions');
  for (const state of actionStates) mkdirSync(join(root, state), { recursive: true });
  mkdirSync(join(dir, 'homelab/events'));
  const config = join(dir, 'reeve.yaml');
  writeFileSync(config, `actions:\n  root: ${root}\n`);
  chmodSync(config, 0o600);
  const environment = {
    REEVE_CONFIG: config,
    REEVE_STATE: join(dir, 'state'),
    REEVE_RUN: join(dir, 'run'),
    REEVE_CACHE: join(dir, 'cache'),
    SUDO_USER: 'ann',
  };
  const start: ControlHost['start'] = (words, under = []) => {
    const [command = '', ...args] = [...under, inject('reeveBin'), ...words];
    const program = startProcess(command, args, environment);
    const end = program.ended.then((ended) => ({ ...ended, json: () => JSON.parse(ended.stdout) }));
    return Object.assign(program, { end });
  };
  const read: ControlHost['read'] = (state, id) =>
    JSON.parse(readFileSync(join(root, state, `${id}.json`), 'utf8'));
  return {
    ...{ dir, root, environment, start, read },
    reeve: (...words) => start(words).end,
    write: (name, content) => {
      const path = join(dir, name);
      mkdirSync(dirname(path), { recursive: true });
      const isRaw = typeof content === 'string' || Buffer.isBuffer(content);
      writeFileSync(path, isRaw ? content : JSON.stringify(content));
      return path;
    },
    propose: (action = {}) => {
      const document = { ...anAction(), ...action };
      writeFileSync(join(root, 'pending', `${document.action_id}.json`), JSON.stringify(document, null, 2));
      return document.action_id;
    },
    statesOf: (id) => actionStates.filter((state) => readdirSync(join(root, state)).includes(`${id}.json`)),
    bytes: (name) => readFileSync(join(dir, name)),
    names: (name, all = false) =>
      readdirSync(join(dir, name))
        .filter((entry) => all || !entry.startsWith('.'))
        .sort(),
    age: (id, seconds) => {
      const path = join(root, 'running', `${id}.json`);
      const action = read('running', id);
      const last = action.transition_history.at(-1);
      last.timestamp -= seconds;
      last.clock.at_ms -= seconds * 1000;
      last.clock.uptime_ms -= seconds * 1000;
      const staged = `${path}.aged`;
      writeFileSync(staged, JSON.stringify(action));
      renameSync(staged, path);
      const then = Date.now() / 1000 - seconds;
      utimesSync(path, then, then);
    },
  };
}

export function anAction(): { action_id: string } & Record<string, unknown> {
  return {
    action_id: actionId,
    ...{ service: 'blog', node: 'web-1', type: 'redeploy', risk: 'guarded', status: 'pending' },
    ...{ created_at: 1_780_000_000, updated_at: 1_780_000_000 },
    details: { image: 'registry.example/blog:1', reason: 'unhealthy for 5 minutes', diff: '-a\n+b' },
    transition_history: [],
    correlation_id: 'drift-7',
  };
}

/** Proposes, approves and dispatches it, and has its node report. */
export async function dispatchAndReport(host: ControlHost): Promise<void> {
  host.propose();
  await host.reeve('action', 'approve', actionId, '--yes');
  await host.reeve('action', 'dispatch');
  const { key } = host.read('running', actionId).transition_history.at(-1);
  const { name, content } = aResult({ key });
  host.write(`homelab/events/web-1/${name}`, content);
}

/** A result as a node reports it, and the name of its file. */
export function aResult(
  about: { key?: string; status?: 'completed' | 'failed'; node?: string; id?: string; epochMs?: number } = {},
): { name: string; content: object } {
  const { key, status = 'completed', node = 'web-1', id = actionId, epochMs = Date.now() } = about;
  const at = new Date(epochMs).toISOString();
  const payload = {
    action_id: id,
    action_type: 'redeploy',
    status,
    exit_code: status === 'completed' ? 0 : 3,
  };
  return {
    name: `evt-${node}-${String(epochMs).padStart(13, '0')}-action_result-${id}.json`,
    content: {
      ...{ timestamp: at, node, type: 'action_result', severity: 'info', source: 'deploy-runner' },
      ...{ service: 'blog', correlation_id: id },
      payload: { ...payload, started_at: at, finished_at: at, ...(key === undefined ? {} : { key }) },
    },
  };
}
