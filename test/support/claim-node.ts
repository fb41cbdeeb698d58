// A node that takes jobs: a server of ploy over mutual TLS, a real engine, and `reeve claim` in whole processes. What its jobs
// leave in the engine goes when the test ends.
import { copyFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';
import { onTestFinished } from './after-test.ts';
import { engineSocket, untilRemoved } from './engine.ts';
import { askDocker } from './node.ts';
import { createPki } from './ploy/pki.ts';
import { type Ploy, startPloy } from './ploy/server.ts';
import { type Program, type ProgramEnd, startProcess } from './programs.ts';
import { makeTempDir } from './temp.ts';

export type ClaimNode = {
  readonly root: string;
  readonly stateDir: string;
  readonly socket: string;
  readonly ploy: Ploy;
  readonly env: Readonly<Record<string, string>>;
  reeve(...words: string[]): Promise<ProgramEnd>;
  start(...words: string[]): Program;
  /** Keys of jobs. */
  openJobs(): string[];
  endedJobs(): string[];
  /** Ids of the containers of this node's jobs, running or not. */
  containers(): Promise<string[]>;
  /** A container as the original would have left it. */
  runForeign(labels: { runId: string; jobId: string }, command: string): Promise<string>;
};

/** `socket`: something in front of the engine, for what reeve asks of it. */
export type ClaimNodeOptions = { concurrency?: number; seed?: number; socket?: string };

export async function makeClaimNode(options: ClaimNodeOptions = {}): Promise<ClaimNode> {
  const root = makeTempDir();
  const pki = createPki(root, 'node-1');
  const ploy = await startPloy({ pki, nodeId: 'node-1', seed: options.seed ?? 1 });
  onTestFinished(() => ploy.stop());
  const env = prepareFiles(root, { pki, ploy, ...options });
  const stateDir = join(root, 'state');
  const socket = engineSocket();
  const start = (...words: string[]): Program => startProcess(inject('reeveBin'), words, env);
  const isOurs = (jobId: string): boolean => ploy.state.jobs.has(jobId) || foreign.has(jobId);
  const foreign = new Set<string>();
  const containers = async (): Promise<string[]> => {
    const format = '{{.ID}} {{.Label "com.ploy.job_id"}}';
    const text = await askDocker(socket, [
      'ps',
      '-a',
      '--no-trunc',
      '--filter',
      'label=com.ploy.job_id',
      '--format',
      format,
    ]);
    const rows = text.split('\n').map((line) => line.split(' '));
    return rows.filter(([, jobId = '']) => isOurs(jobId)).map(([id = '']) => id);
  };
  const clear = async (): Promise<void> => {
    const left = await containers();
    if (left.length > 0) await askDocker(socket, ['rm', '-f', '-v', ...left]);
  };
  onTestFinished(() => untilRemoved(clear));
  return {
    ...{ root, stateDir, socket, ploy, env, start, containers },
    reeve: (...words) => start(...words).ended,
    openJobs: () => listKeys(join(stateDir, 'jobs')),
    endedJobs: () => listKeys(join(stateDir, 'jobs-ended')),
    runForeign: async ({ runId, jobId }, command) => {
      foreign.add(jobId);
      const labels = ['--label', `com.ploy.run_id=${runId}`, '--label', `com.ploy.job_id=${jobId}`];
      const words = ['run', '-d', ...labels, 'reeve-demo/worker:v1', 'sh', '-c', command];
      return (await askDocker(socket, words)).trim();
    },
  };
}

function prepareFiles(
  root: string,
  node: { pki: ReturnType<typeof createPki>; ploy: Ploy } & ClaimNodeOptions,
): Record<string, string> {
  const { pki, ploy, concurrency = 4, socket = engineSocket() } = node;
  const at = (name: string): string => join(root, 'etc', name);
  mkdirSync(at(''), { recursive: true });
  const tls = { enabled: true, cert_path: at('node.crt'), key_path: at('node.key'), ca_path: at('ca.crt') };
  copyFileSync(pki.node.cert, tls.cert_path);
  copyFileSync(pki.node.key, tls.key_path);
  copyFileSync(pki.ca.cert, tls.ca_path);
  writeFileSync(at('token'), ploy.token, { mode: 0o600 });
  const jobs = {
    server_url: ploy.url,
    node_id: 'node-1',
    concurrency,
    http: { listen: '127.0.0.1:8444', tls },
  };
  const cluster = { store: `file://${join(root, 'store')}`, docker: { socket } };
  writeFileSync(at('reeve.yaml'), JSON.stringify({ jobs, cluster }));
  return {
    REEVE_CONFIG: at('reeve.yaml'),
    REEVE_STATE: join(root, 'state'),
    REEVE_RUN: join(root, 'run'),
    REEVE_CACHE: join(root, 'cache'),
    PLOYD_CACHE_HOME: join(root, 'work'),
    PLOY_NODE_BEARER_TOKEN_PATH: at('token'),
  };
}

function listKeys(directory: string): string[] {
  try {
    return readdirSync(directory)
      .filter((name) => !name.startsWith('.'))
      .sort();
  } catch {
    return [];
  }
}
