// Everything that a job's container is given of this machine: the run's workspace, the job's directories, files of bundles.
import { chmod, mkdir, rm, stat } from 'node:fs/promises';
import type { Context } from '../../context.ts';
import type { ControlPlane } from '../../control-plane/control-plane.ts';
import type { BindMount } from '../../docker/types.ts';
import { containerDirs } from '../../ploy/names.ts';
import type { Execution } from '../../ploy/plan.ts';
import type { ClaimPayload } from '../../ploy/wire.ts';
import { fileError } from '../../state/file-error.ts';
import { materializeFiles, tmpDir } from './bundles.ts';
import { hydrateWorkspace } from './hydrate.ts';
import { type WorkspacePaths, workspacePaths } from './paths.ts';
import { writeTreeBefore } from './repo-sha.ts';

export type ContainerExecution = Extract<Execution, { kind: 'container' }>;

export type WorkspaceRequest = {
  payload: ClaimPayload;
  execution: ContainerExecution;
  controlPlane: Pick<ControlPlane, 'fetchSnapshot' | 'fetchSpecBundle'>;
  signal: AbortSignal;
};

export type PreparedWorkspace = { paths: WorkspacePaths; binds: readonly BindMount[] };

const dockerSocket = '/var/run/docker.sock';

/**
 * From the beginning each time: no container has run yet. Throws InputError for what a server or a spec has wrong, another
 * ReeveError for what is wrong here or on the way.
 */
export async function prepareWorkspace(ctx: Context, request: WorkspaceRequest): Promise<PreparedWorkspace> {
  const { payload, execution, controlPlane, signal } = request;
  const paths = workspacePaths(ctx, { runId: payload.id, jobId: payload.job_id });
  try {
    await makeDirectories(paths, execution);
    await hydrateWorkspace({ paths, payload, controlPlane, signal });
    const homes = await materializeFiles({ paths, files: execution.files, controlPlane, signal });
    await writeTreeBefore(paths, signal);
    return { paths, binds: [...(await findBinds(ctx, paths, execution)), ...homes] };
  } catch (error) {
    signal.throwIfAborted();
    throw fileError('prepare', paths.run, error);
  }
}

/** Nobody else on this machine gets below `runs`, so that what containers write there, as whatever user, is theirs to say. */
async function makeDirectories(paths: WorkspacePaths, execution: ContainerExecution): Promise<void> {
  for (const directory of [paths.job, paths.scratch]) await rm(directory, { recursive: true, force: true });
  await mkdir(paths.runs, { recursive: true, mode: 0o700 });
  for (const directory of [paths.job, paths.scratch]) await mkdir(directory, { recursive: true, mode: 0o750 });
  const shared = [paths.in, paths.out, paths.share];
  for (const directory of shared) await makeDirectory(directory, 0o777);
  if (execution.needsTmp) await makeDirectory(tmpDir(paths), 0o1777);
}

/** Whatever our umask is. */
async function makeDirectory(directory: string, mode: number): Promise<void> {
  await mkdir(directory, { recursive: true });
  await chmod(directory, mode);
}

async function findBinds(
  { config }: Pick<Context, 'config'>,
  paths: WorkspacePaths,
  { needsTmp, mountDockerSocket }: ContainerExecution,
): Promise<BindMount[]> {
  const bind = (source: string, target: string, readOnly = false): BindMount => ({ source, target, readOnly });
  const hasCerts = await stat(containerDirs.certs).then(
    () => true,
    () => false,
  );
  return [
    bind(paths.workspace, containerDirs.workspace),
    bind(paths.in, containerDirs.in),
    bind(paths.out, containerDirs.out),
    bind(paths.share, containerDirs.share),
    ...(needsTmp ? [bind(tmpDir(paths), containerDirs.tmp)] : []),
    ...(hasCerts ? [bind(containerDirs.certs, containerDirs.certs, true)] : []),
    ...(mountDockerSocket ? [bind(config.cluster?.docker.socket ?? dockerSocket, dockerSocket)] : []),
  ];
}
