// The hash that names what a job has left in the workspace: ploy's `repo_sha_v1`.
import type { Context } from '../../context.ts';
import { InternalError } from '../../errors.ts';
import type { WorkspacePaths } from './paths.ts';

/** After `commitBaseline` or before it: it gives the same. */
export async function computeRepoShaOut(
  _ctx: Context,
  _paths: WorkspacePaths,
  _repoShaIn: string,
  _signal: AbortSignal,
): Promise<string> {
  throw new InternalError('no hash can be made yet');
}
