// Everything that a job's container is given of this machine: the run's workspace, the job's directories, files of bundles.
import type { Context } from '../../context.ts';
import type { ControlPlane } from '../../control-plane/control-plane.ts';
import type { BindMount } from '../../docker/types.ts';
import { InternalError } from '../../errors.ts';
import type { Execution } from '../../ploy/plan.ts';
import type { ClaimPayload } from '../../ploy/wire.ts';
import type { WorkspacePaths } from './paths.ts';

export type ContainerExecution = Extract<Execution, { kind: 'container' }>;

export type WorkspaceRequest = {
  payload: ClaimPayload;
  execution: ContainerExecution;
  controlPlane: Pick<ControlPlane, 'fetchSnapshot' | 'fetchSpecBundle'>;
  signal: AbortSignal;
};

export type PreparedWorkspace = { paths: WorkspacePaths; binds: readonly BindMount[] };

/** Throws InputError for what a server or a spec has wrong, StepError or UnavailableError for what is wrong here or on the way. */
export async function prepareWorkspace(
  _ctx: Context,
  _request: WorkspaceRequest,
): Promise<PreparedWorkspace> {
  throw new InternalError('no workspace can be made yet');
}
