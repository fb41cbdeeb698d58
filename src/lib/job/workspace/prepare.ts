// Everything that a job's container is given of this machine: the run's workspace, the job's directories, files of bundles.
import { chmod, mkdir, rm, stat } from 'node:fs/promises';
import type { Context } from '../../context.ts';
import type { ControlPlane } from '../../control-plane/control-plane.ts';
import type { BindMount } from '../../docker/types.ts';
import { containerDirs } from '../../ploy/names.ts';
import type { Execution } from '../../ploy/plan.ts';
import type { ClaimPayload } from '../../ploy/wire.ts';
import { fileError } from '../../state/file-error.ts';
import { writeBefore } from './before.ts';
import { makeTmp, placeBundles } from './bundles.ts';
import { makeRoomForWorkspace } from './clean.ts';
import { openGit } from './git.ts';
import { hydrateWorkspace } from './hydrate.ts';
import { type WorkspacePaths, workspacePaths } from './paths.ts';
import { readHead } from './repository.ts';
import { stageWorkspace } from './stage.ts';

export type ContainerExecution = Extract<Execution, { kind: 'container' }>;

export type WorkspaceRequest = {
  payload: ClaimPayload;
  execution: ContainerExecution;
  controlPlane: Pick<ControlPlane, 'fetchSnapshot' | 'fetchSpecBundle'>;
  signal: AbortSignal;
};

export type PreparedWorkspace = { paths: WorkspacePaths; binds: readonly BindMount[] };

type PrepareContext = Pick<Context, 'config' | 'overrides' | 'paths' | 'log' | 'clock'>;

/** Where programs in containers look for it. */
const dockerSocket = '/var/run/docker.sock';

/**
 * Throws InputError for what a server or a spec has wrong, StepError or UnavailableError for what is wrong here or on the way.
 * Begins the job's own directories anew: no container of the job has run.
 */
export async function prepareWorkspace(
  ctx: PrepareContext,
  { payload, execution, controlPlane, signal }: WorkspaceRequest,
): Promise<PreparedWorkspace> {
  const { id: runId, job_id: jobId, commit_sha: commitSha, repo_sha_in: repoShaIn } = payload;
  const paths = workspacePaths(ctx, { runId, jobId });
  await makeDirectories(paths, execution.needsTmp);
  const fetchSnapshot = (run: string) => controlPlane.fetchSnapshot(run);
  const isNew = await hydrateWorkspace(ctx, paths, { runId, commitSha, repoShaIn, fetchSnapshot, signal });
  await recordBefore(paths, signal);
  if (isNew) await makeRoomForWorkspace(ctx);
  const fetchSpecBundle = (bundle: string) => controlPlane.fetchSpecBundle(bundle);
  const files = await placeBundles(paths, execution.files, { fetchSpecBundle, signal });
  const socket = ctx.config.cluster?.docker.socket ?? dockerSocket;
  const bind = (source: string, target: string, readOnly = false): BindMount => ({
    source,
    target,
    readOnly,
  });
  const binds = [
    bind(paths.workspace, containerDirs.workspace),
    bind(paths.in, containerDirs.in),
    bind(paths.out, containerDirs.out),
    bind(paths.share, containerDirs.share),
    ...(execution.needsTmp ? [bind(paths.tmp, containerDirs.tmp)] : []),
    ...(execution.mountDockerSocket && (await isThere(socket)) ? [bind(socket, dockerSocket)] : []),
    ...((await isThere(containerDirs.certs)) ? [bind(containerDirs.certs, containerDirs.certs, true)] : []),
    ...files,
  ];
  return { paths, binds };
}

async function makeDirectories(paths: WorkspacePaths, needsTmp: boolean): Promise<void> {
  try {
    for (const path of [paths.job, paths.scratch]) await rm(path, { recursive: true, force: true });
    // Nobody else on this machine looks into what containers leave; the engine mounts it as root.
    await mkdir(paths.run, { recursive: true, mode: 0o700 });
    for (const path of [paths.in, paths.out, paths.share, paths.scratch, paths.staged]) {
      await mkdir(path, { recursive: true });
    }
    for (const path of [paths.in, paths.out, paths.share]) await chmod(path, 0o777);
    if (needsTmp) await makeTmp(paths.tmp);
  } catch (error) {
    throw fileError('make directories of', paths.run, error);
  }
}

async function recordBefore(paths: WorkspacePaths, signal: AbortSignal): Promise<void> {
  await openGit(paths);
  const { commit } = await readHead(paths.workspace);
  const { tree } = await stageWorkspace({ signal }, paths, { base: commit });
  await writeBefore(paths, { commit, tree });
}

async function isThere(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}
