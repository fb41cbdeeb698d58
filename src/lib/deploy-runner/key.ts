// What tells two approvals of one action apart: an id comes again with each new drift, the same approval only by mistake.
import { createHash } from 'node:crypto';
import type { Action, Transition } from './action.ts';

const digestDigits = 64;

/** The id, a dash and the digits. */
export const markerKeyPattern = /^[a-z0-9][a-z0-9-]{0,63}-[0-9a-f]{64}$/;

/** The id in a key. For people the rest of it is of no use. */
export function actionIdOf(key: string): string {
  return key.slice(0, -'-'.length - digestDigits);
}

/** `bytes`: of the file. Without an approval in its history it is the whole file that counts. */
export function markerKey(action: Action, bytes: Uint8Array): string {
  const approval = findApproval(action);
  if (approval === undefined) return contentKey(action.actionId, bytes);
  const { actionId, type, node, service } = action;
  const { timestamp, by } = approval;
  // JSON leaves away what is undefined: a service that is missing is another text than any that is not.
  return contentKey(actionId, JSON.stringify({ action_id: actionId, type, node, service, timestamp, by }));
}

/** For what stands under an action's name and is none. */
export function contentKey(actionId: string, content: Uint8Array | string): string {
  return `${actionId}-${createHash('sha256').update(content).digest('hex')}`;
}

/** The last one. */
export function findApproval({ transitions }: Pick<Action, 'transitions'>): Transition | undefined {
  return transitions.findLast(({ to }) => to === 'approved');
}

/** For people. */
export function describeApproval(action: Pick<Action, 'transitions'>): string {
  const approval = findApproval(action);
  return approval === undefined ? 'approved' : `approved by ${approval.by}`;
}
