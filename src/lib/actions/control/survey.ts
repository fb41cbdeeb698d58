// How many actions the control host has in each open state, and which of them should have ended long ago. Read-only.
import type { ActionsConfig } from '../../config/config.ts';
import type { Context } from '../../context.ts';
import { usualResultMs } from '../../deploy-runner/times.ts';
import { findBootId } from '../../host/boot.ts';
import { readMoment, upSinceMs } from '../../host/moment.ts';
import { readDispatch, redeployType } from './found.ts';
import { countActions, readState } from './tree.ts';

export type ControlSurvey = {
  pending: number;
  approved: number;
  running: number;
  /** Redeploys without an end, past the time after which they have failed. */
  late: readonly { id: string; node: string; waitedMs: number }[];
  timeoutMs: number;
};

export async function surveyControl(
  {
    root,
    resultTimeoutMs: timeoutMs = usualResultMs,
  }: Pick<ActionsConfig, 'resultTimeoutMs'> & { root: string },
  ctx: Pick<Context, 'clock' | 'paths'>,
): Promise<ControlSurvey> {
  const [pending, approved, running] = await Promise.all([
    countActions(root, 'pending'),
    countActions(root, 'approved'),
    readState(root, 'running'),
  ]);
  const now = await readMoment(ctx, findBootId);
  const late = running.found.flatMap((found) => {
    if (found.kind === 'refused' || found.action.type !== redeployType) return [];
    const waitedMs = upSinceMs(readDispatch(found, new Date(now.atMs)).since, now);
    return waitedMs > timeoutMs ? [{ id: found.id, node: found.action.node, waitedMs }] : [];
  });
  return { pending, approved, running: running.found.length, late, timeoutMs };
}
