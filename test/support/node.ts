// A node of a cluster in a temporary directory: configuration, state, a store of its own, and `reeve` as whole processes
// against a real engine. What it has made in the engine goes when the test ends.
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inject } from 'vitest';
import type {
  DesiredDocument,
  DesiredService,
  NodeStatus,
  UpstreamShard,
} from '../../src/lib/cluster/wire.ts';
import { onTestFinished } from './after-test.ts';
import { aDesired } from './builders.ts';
import { engineSocket, untilRemoved } from './engine.ts';
import { type Program, type ProgramEnd, startProcess } from './programs.ts';
import { makeTempDir } from './temp.ts';

export type TestNodeOptions = {
  nodeId?: string;
  /** Of what the node deploys. Tests that run side by side need one each: names of containers come from it. */
  project?: string;
  /** The test's own hook, where tests run side by side. */
  onTestFinished?: (clean: () => void | Promise<void>) => void;
  /** Default: the run's engine. */
  socket?: string;
  /** Default: a directory of the node's own. */
  storeDir?: string;
  /** Keys of the section `cluster` that differ. */
  cluster?: Readonly<Record<string, unknown>>;
  env?: Readonly<Record<string, string>>;
};

export type ReeveEnd = ProgramEnd & {
  /** The document that `--json` prints. */
  json(): ReeveAnswer;
};

export type ReeveAnswer = {
  outcome: string;
  actions: { action: string; project: string; service: string; replica?: number; error?: string }[];
  troubles: { key: string; message: string }[];
  [field: string]: unknown;
};

export type RunningReeve = Program & { readonly end: Promise<ReeveEnd> };

export type TestNode = {
  readonly root: string;
  readonly nodeId: string;
  readonly project: string;
  readonly stateDir: string;
  readonly storeDir: string;
  readonly socket: string;
  /** Runs a command to its end. */
  reeve(...words: string[]): Promise<ReeveEnd>;
  start(words: readonly string[], env?: Readonly<Record<string, string>>): RunningReeve;
  /** Writes services of a deploy file and deploys them. Throws unless it exits 0. */
  deploy(services: readonly object[], ...flags: string[]): Promise<ReeveEnd>;
  /** desired.json by hand, as launch-pad's CLI or an accident would write it. */
  writeDesired(content: readonly DesiredService[] | string): void;
  desired(): DesiredDocument;
  status(): NodeStatus;
  reeveJson(): Record<string, unknown>;
  shard(edge?: string): UpstreamShard;
  /** A file below the state directory. */
  state(name: string): unknown;
  writeState(name: string, content: unknown): void;
  writeSecret(path: string, value: string): void;
  containers(): Promise<Container[]>;
};

/** A container as Docker's own client sees it. */
export type Container = {
  id: string;
  name: string;
  state: string;
  image: string;
  startedAt: string;
  restartCount: number;
  labels: Readonly<Record<string, string>>;
  env: readonly string[];
  networks: readonly string[];
  mounts: readonly { name: string; path: string }[];
};

let count = 0;

export function makeNode(options: TestNodeOptions = {}): TestNode {
  const { project = 'blog', onTestFinished: whenFinished = onTestFinished } = options;
  const root = makeTempDir(whenFinished);
  count += 1;
  const nodeId = options.nodeId ?? `node-${process.pid}-${count}`;
  const socket = options.socket ?? engineSocket();
  const storeDir = options.storeDir ?? join(root, 'store');
  const stateDir = join(root, 'state');
  const configFile = join(root, 'etc/reeve.yaml');
  const store = (path: string): string => join(storeDir, path);
  writeConfig(configFile, { nodeId, socket, storeDir, cluster: options.cluster });
  writeFile(store(`nodes/${nodeId}/node.json`), JSON.stringify({ nodeId, role: 'app' }));
  writeFile(store('nodes/edge-1/node.json'), JSON.stringify({ nodeId: 'edge-1', role: 'edge' }));
  const environment = {
    REEVE_CONFIG: configFile,
    REEVE_STATE: stateDir,
    REEVE_RUN: join(root, 'run'),
    REEVE_CACHE: join(root, 'cache'),
    // Never what an agent on this machine may have left.
    LAUNCHPAD_STATE: join(root, 'launch-pad/state.json'),
    ...options.env,
  };
  whenFinished(() => untilRemoved(() => clearEngine(engineSocket(), { project, nodeId })));

  const start: TestNode['start'] = (words, env = {}) => {
    const program = startProcess(inject('reeveBin'), words, { ...environment, ...env });
    return Object.assign(program, { end: program.ended.then(toReeveEnd) });
  };
  const node: TestNode = {
    ...{ root, nodeId, project, stateDir, storeDir, socket, start },
    reeve: (...words) => start(words).end,
    deploy: async (services, ...flags) => {
      const file = join(root, 'services.yaml');
      const placed = services.map((service) => ({ nodes: [nodeId], project, ...service }));
      writeFile(file, JSON.stringify({ services: placed }));
      const end = await start(['deploy', file, '--yes', ...flags]).end;
      if (end.status !== 0) throw new Error(`deploy exited ${end.status}:\n${end.stdout}${end.stderr}`);
      return end;
    },
    writeDesired: (content) => {
      const updatedAt = new Date().toISOString();
      const text =
        typeof content === 'string' ? content : JSON.stringify(aDesired(content, { nodeId, updatedAt }));
      writeFile(store(`nodes/${nodeId}/desired.json`), text);
    },
    desired: () => readJson(store(`nodes/${nodeId}/desired.json`)) as DesiredDocument,
    status: () => readJson(store(`nodes/${nodeId}/status.json`)) as NodeStatus,
    reeveJson: () => readJson(store(`nodes/${nodeId}/reeve.json`)) as Record<string, unknown>,
    shard: (edge = 'edge-1') => readJson(store(`nodes/${edge}/upstream/${nodeId}.json`)) as UpstreamShard,
    state: (name) => readJson(join(stateDir, name)),
    writeState: (name, content) =>
      writeFile(join(stateDir, name), typeof content === 'string' ? content : JSON.stringify(content)),
    writeSecret: (path, value) => {
      const file = join(root, 'etc/secrets', path);
      writeFile(file, value);
      chmodSync(file, 0o600);
    },
    containers: () => inspectContainers(engineSocket(), `reeve.node=${nodeId}`),
  };
  return node;
}

/** Containers that carry the label, running or not, by name. */
async function inspectContainers(socket: string, label: string): Promise<Container[]> {
  const ids = toLines(await askDocker(socket, ['ps', '-aq', '--no-trunc', '--filter', `label=${label}`]));
  return (await inspectAll(socket, ids)).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Those that exist. */
export async function inspectAll(socket: string, ids: readonly string[]): Promise<Container[]> {
  if (ids.length === 0) return [];
  try {
    return JSON.parse(await askDocker(socket, ['inspect', '--type', 'container', ...ids])).map(toContainer);
  } catch (error) {
    if (!/No such container/.test(String(error))) throw error;
    // One of them has gone meanwhile.
    return ids.length === 1 ? [] : (await Promise.all(ids.map((id) => inspectAll(socket, [id])))).flat();
  }
}

/** Docker's own client without holding this process up: requests of other tests may be under way. */
export async function askDocker(socket: string, args: readonly string[]): Promise<string> {
  const { status, stdout, stderr } = await startProcess('/usr/bin/docker', [
    '-H',
    `unix://${socket}`,
    ...args,
  ]).ended;
  if (status === 0) return stdout;
  throw new Error(`docker ${args.join(' ')} ended with ${status}:\n${stderr}`);
}

/** Ends containers by Docker's own client, until the engine's list says so as well, which may lag behind its answer. */
export async function stopContainer(socket: string, name: string): Promise<void> {
  await askDocker(socket, ['stop', '-t', '5', name]);
  await untilListedAsEnded(socket, name);
}

export async function untilListedAsEnded(socket: string, name: string): Promise<void> {
  for (const filter = `name=^/?${name}$`; ; await sleep(50)) {
    if ((await askDocker(socket, ['ps', '-q', '--filter', filter])).trim() === '') return;
  }
}

function toLines(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}

// biome-ignore lint/suspicious/noExplicitAny: the engine's own document
function toContainer(raw: any): Container {
  return {
    id: raw.Id,
    name: raw.Name.slice(1),
    state: raw.State.Status,
    image: raw.Config.Image,
    startedAt: raw.State.StartedAt,
    restartCount: raw.RestartCount,
    labels: raw.Config.Labels,
    env: raw.Config.Env,
    networks: Object.keys(raw.NetworkSettings.Networks).sort(),
    mounts: raw.Mounts.map((mount: { Name: string; Destination: string }) => ({
      name: mount.Name,
      path: mount.Destination,
    })),
  };
}

/** All that the node has made, and everything that is named like its project's. */
async function clearEngine(socket: string, node: { project: string; nodeId: string }): Promise<void> {
  const filters = [`label=reeve.node=${node.nodeId}`, `name=launchpad_${node.project}_`];
  const listed = await Promise.all(
    filters.map((filter) => askDocker(socket, ['ps', '-aq', '--filter', filter])),
  );
  const ids = [...new Set(listed.flatMap(toLines))];
  if (ids.length > 0) await askDocker(socket, ['rm', '-f', '-v', ...ids]);
  const filter = `name=launchpadvol_${node.project}_`;
  const volumes = toLines(await askDocker(socket, ['volume', 'ls', '-q', '--filter', filter]));
  if (volumes.length > 0) await askDocker(socket, ['volume', 'rm', ...volumes]);
}

function writeConfig(
  path: string,
  node: { nodeId: string; socket: string; storeDir: string; cluster: TestNodeOptions['cluster'] },
): void {
  const cluster = {
    nodeId: node.nodeId,
    advertiseIp: '127.0.0.1',
    publish: '127.0.0.1',
    store: `file://${node.storeDir}`,
    // An edge that polls four times a second: the drain floor is 375 ms.
    intervals: { edge: '250ms' },
    docker: { socket: node.socket },
    ...node.cluster,
  };
  // JSON is YAML.
  writeFile(path, JSON.stringify({ cluster }));
}

function writeFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, 'utf8'));
}

function toReeveEnd(end: ProgramEnd): ReeveEnd {
  return { ...end, json: () => JSON.parse(end.stdout) };
}
