// An edge: the real Caddy, HAProxy where it balances, a store that app nodes write to, and `reeve edge` as whole processes.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, watch, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inject } from 'vitest';
import type { ReeveDocument } from '../../src/lib/cluster/reeve-document.ts';
import type { NodeStatus, ShardBackend, UpstreamShard } from '../../src/lib/cluster/wire.ts';
import type { EdgeDocument } from '../../src/lib/edge/documents.ts';
import { onTestFinished } from './after-test.ts';
import { type Caddy, type CaddyOptions, startCaddy } from './caddy.ts';
import { type Haproxy, startHaproxy } from './haproxy.ts';
import { type ProgramEnd, startProcess } from './programs.ts';
import { makeTempDir } from './temp.ts';

export type EdgeOptions = {
  balancer: 'caddy' | 'haproxy';
  caddy?: Pick<CaddyOptions, 'resume' | 'boot'>;
  /** Keys of the section `cluster` that differ. */
  cluster?: Readonly<Record<string, unknown>>;
  /** Default: of its own. */
  storeDir?: string;
  env?: Readonly<Record<string, string>>;
  /** A hook other than the test's own. */
  whenFinished?: (clean: () => void | Promise<void>) => void;
};

export type TestEdge = {
  readonly root: string;
  readonly storeDir: string;
  readonly caddy: Caddy;
  /** Only where it balances. */
  readonly haproxy: Haproxy | undefined;
  readonly environment: Readonly<Record<string, string>>;
  reeve(...words: string[]): Promise<EdgeEnd>;
  /** `reeve edge --json`, which has to exit 0 or with `status`. */
  tick(status?: number): Promise<EdgeAnswer>;
  /** Runs a tick at each wake and at each change of a shard, as the path unit does, until the answer is called. */
  watch(): () => Promise<void>;
  /** Publishes a node's shard and wakes the edge. */
  publish(nodeId: string, backends: readonly ShardBackend[], change?: Partial<UpstreamShard>): void;
  writeShard(nodeId: string, text: string): void;
  /** Changes keys of the section `cluster`. */
  configure(change: Readonly<Record<string, unknown>>): void;
  status(): NodeStatus;
  reeveJson(): ReeveDocument;
  memory(): EdgeDocument;
};

export type EdgeAnswer = {
  outcome: string;
  actions: { action: string; subject: string; reason: string }[];
  troubles: { subject: string; message: string }[];
  domains: number;
  backends: number;
};

export type EdgeEnd = ProgramEnd & { json(): EdgeAnswer };

export const edgeId = 'edge-1';

export async function startEdge(options: EdgeOptions): Promise<TestEdge> {
  const { whenFinished = onTestFinished } = options;
  const root = makeTempDir(whenFinished);
  const storeDir = options.storeDir ?? join(root, 'store');
  const upstream = join(storeDir, 'nodes', edgeId, 'upstream');
  mkdirSync(upstream, { recursive: true });
  const environment = {
    REEVE_CONFIG: join(root, 'etc/reeve.yaml'),
    REEVE_STATE: join(root, 'state'),
    REEVE_RUN: join(root, 'run'),
    REEVE_CACHE: join(root, 'cache'),
    ...options.env,
  };
  const caddy = await startCaddy({ ...options.caddy, whenFinished });
  const haproxy =
    options.balancer === 'haproxy'
      ? await startHaproxy({ cacheDir: environment.REEVE_CACHE, whenFinished })
      : undefined;
  const cluster = {
    nodeId: edgeId,
    role: 'edge',
    store: `file://${storeDir}`,
    caddy: caddy.settings,
    balancer: options.balancer,
    ...(haproxy && { haproxy: { address: haproxy.address, directory: haproxy.directory } }),
    ...options.cluster,
  };
  // JSON is YAML.
  mkdirSync(dirname(environment.REEVE_CONFIG), { recursive: true });
  const configure: TestEdge['configure'] = (change) =>
    writeFileSync(environment.REEVE_CONFIG, JSON.stringify({ cluster: { ...cluster, ...change } }));
  configure({});
  const wakeFile = join(root, 'run/wake/edge');
  mkdirSync(join(root, 'run/wake'), { recursive: true });

  const reeve: TestEdge['reeve'] = async (...words) => {
    const end = await startProcess(inject('reeveBin'), words, environment).ended;
    return { ...end, json: () => JSON.parse(end.stdout) };
  };
  const writeShard: TestEdge['writeShard'] = (nodeId, text) => {
    writeFileSync(join(upstream, `.${nodeId}.tmp`), text);
    renameSync(join(upstream, `.${nodeId}.tmp`), join(upstream, `${nodeId}.json`));
    writeFileSync(wakeFile, '');
  };
  const read = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));
  return {
    ...{ root, storeDir, caddy, haproxy, environment, reeve, writeShard, configure },
    tick: async (status = 0) => {
      const end = await reeve('edge', '--json');
      if (end.status !== status) throw new Error(`edge exited ${end.status}:\n${end.stdout}${end.stderr}`);
      return end.json();
    },
    watch: () => watchWakes({ wakeFile, upstream }, () => reeve('edge', '--json', '--wait', '30')),
    publish: (nodeId, backends, change = {}) => {
      const updatedAt = new Date().toISOString();
      writeShard(nodeId, JSON.stringify({ nodeId, privateIp: '127.0.0.1', updatedAt, backends, ...change }));
    },
    status: () => read(join(storeDir, 'nodes', edgeId, 'status.json')) as NodeStatus,
    reeveJson: () => read(join(storeDir, 'nodes', edgeId, 'reeve.json')) as ReeveDocument,
    memory: () => read(join(root, 'state/edge.json')) as EdgeDocument,
  };
}

/** What wakes it goes before the tick looks, so that what comes meanwhile makes another one. */
function watchWakes(
  { wakeFile, upstream }: { wakeFile: string; upstream: string },
  tick: () => Promise<EdgeEnd>,
): () => Promise<void> {
  let isWoken = true;
  const watcher = watch(upstream, (_event, name) => {
    if (name?.endsWith('.json')) isWoken = true;
  });
  const ending = new AbortController();
  const failures: string[] = [];
  const run = async (): Promise<void> => {
    while (!ending.signal.aborted) {
      if (isWoken || existsSync(wakeFile)) {
        isWoken = false;
        rmSync(wakeFile, { force: true });
        const end = await tick();
        if (end.status !== 0) failures.push(`edge exited ${end.status}:\n${end.stdout}${end.stderr}`);
      } else await sleep(5);
    }
  };
  const done = run();
  const stop = async (): Promise<void> => {
    ending.abort();
    await done;
    if (failures.length > 0) throw new Error(failures.join('\n'));
  };
  onTestFinished(async () => {
    ending.abort();
    watcher.close();
    await done;
  });
  return stop;
}
