// Lets go of workspaces whose run nobody works on any more.
import type { Context } from '../../context.ts';
import { InternalError } from '../../errors.ts';

/** Of no run in `openRunIds`, and of none that had a job a short while ago: its next one may be claimed yet. */
export async function removeOldWorkspaces(
  _ctx: Context,
  _openRunIds: ReadonlySet<string>,
): Promise<{ removed: number }> {
  throw new InternalError('no workspace can be removed yet');
}
