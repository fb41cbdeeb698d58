// How many actions the control host has in each open state, and which of them should have ended long ago. Read-only.

import { listEntries } from '../actions/open.ts';
import type { ActionsConfig } from '../config/config.ts';
import { type ActionState, stateDirectory } from '../deploy-runner/layout.ts';
import { parseActionFileName } from '../deploy-runner/names.ts';
import { readDispatch, redeployType, usualTimeoutMs } from './facts.ts';
import { readState } from './tree.ts';

export type ControlSurvey = {
  pending: number;
  approved: number;
  running: number;
  /** Redeploys without an end, past the time after which they have failed. */
  late: readonly { id: string; node: string; sinceMs: number }[];
  timeoutMs: number;
};

const mostNames = 200_000;

export async function surveyControl(
  {
    root,
    resultTimeoutMs: timeoutMs = usualTimeoutMs,
  }: Pick<ActionsConfig, 'resultTimeoutMs'> & { root: string },
  now: Date,
): Promise<ControlSurvey> {
  const [pending, approved, running] = await Promise.all([
    count(root, 'pending'),
    count(root, 'approved'),
    readState(root, 'running'),
  ]);
  const late = running.found.flatMap((found) => {
    if (found.kind === 'refused' || found.action.type !== redeployType) return [];
    const sinceMs = readDispatch(found).atMs;
    return now.getTime() - sinceMs > timeoutMs ? [{ id: found.id, node: found.action.node, sinceMs }] : [];
  });
  return { pending, approved, running: running.found.length, late, timeoutMs };
}

async function count(root: string, state: ActionState): Promise<number> {
  const { names } = await listEntries(stateDirectory(root, state), mostNames);
  return names.filter(({ text }) => parseActionFileName(text) !== undefined).length;
}
