// A node's workspaces without its jobs: the strict server with a repository, and a git of the test's own.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { loadConfig } from '../../src/lib/config/load.ts';
import { resolvePaths } from '../../src/lib/config/paths.ts';
import type { Context } from '../../src/lib/context.ts';
import { openControlPlane } from '../../src/lib/control-plane/client.ts';
import type { ContainerExecution, PreparedWorkspace } from '../../src/lib/job/workspace/prepare.ts';
import { prepareWorkspace } from '../../src/lib/job/workspace/prepare.ts';
import { silentLog } from '../../src/lib/report/log.ts';
import { systemClock } from '../../src/lib/time.ts';
import { onTestFinished } from './after-test.ts';
import { makeJobsMachine } from './jobs-machine.ts';
import type { JobOptions } from './ploy/jobs.ts';
import type { Ploy } from './ploy/server.ts';

export type Workspaces = {
  ctx: Context;
  ploy: Ploy;
  signal: AbortSignal;
  /** Asks for a job of the server's and makes its workspace. */
  prepare(about?: { job?: JobOptions; execution?: Partial<ContainerExecution> }): Promise<PreparedWorkspace>;
};

export async function makeWorkspaces(): Promise<Workspaces> {
  const machine = await makeJobsMachine();
  const paths = resolvePaths(
    { config: join(machine.root, 'etc/reeve.yaml') },
    {
      REEVE_CACHE: join(machine.root, 'cache'),
      REEVE_RUN: join(machine.root, 'run'),
      REEVE_STATE: join(machine.root, 'state'),
    },
  );
  const config = await loadConfig(paths, {});
  if (config.jobs === undefined) throw new Error('there is no section jobs');
  const { signal } = new AbortController();
  const overrides = { PLOY_NODE_BEARER_TOKEN_PATH: machine.files.token };
  const base = { runId: 'test', command: 'job run', interactive: false, log: silentLog, clock: systemClock };
  const cluster = { docker: { socket: pathOfAnything } } as Context['config']['cluster'];
  const withEngine = cluster === undefined ? config : { ...config, cluster };
  const ctx: Context = { ...base, paths, config: withEngine, overrides, signal };
  const controlPlane = openControlPlane(ctx, config.jobs);
  onTestFinished(() => controlPlane.close());
  return {
    ...{ ctx, signal, ploy: machine.ploy },
    prepare: async ({ job = {}, execution = {} } = {}) => {
      const { payload } = machine.ploy.queueJob(job);
      // Only whoever has a job of the run gets its snapshot.
      await controlPlane.claim();
      const about = { payload, execution: { ...plainExecution, ...execution }, controlPlane, signal };
      return await prepareWorkspace(ctx, about);
    },
  };
}

const plainExecution: ContainerExecution = {
  ...{ kind: 'container', image: 'example:1', command: [], env: {}, workingDir: '/workspace', stepIndex: 0 },
  ...{ files: [], needsTmp: false, mountDockerSocket: false },
};

/** No job is run here: that it is there is all that an engine's socket has to be. */
const pathOfAnything = '/dev/null';

/** As whoever works in the container does it, and with the configuration that lies there. */
export function gitIn(directory: string, ...args: string[]): string {
  return execFileSync('git', ['-C', directory, ...args], {
    ...{ encoding: 'utf8', stdio: 'pipe' },
    env: {
      PATH: process.env['PATH'],
      HOME: '/nonexistent',
      ...{ GIT_AUTHOR_NAME: 'Somebody', GIT_AUTHOR_EMAIL: 'somebody@example.invalid' },
      ...{ GIT_COMMITTER_NAME: 'Somebody', GIT_COMMITTER_EMAIL: 'somebody@example.invalid' },
    },
  }).trim();
}
