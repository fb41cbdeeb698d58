// Whether there is something to decide about, from all that lies under an action's id. Pure.
import { type Found, type FoundAction, redeployType } from '../actions/control/found.ts';
import type { ActionState } from '../deploy-runner/layout.ts';
import { InputError } from '../errors.ts';

export type Decision = 'approved' | 'rejected';

/** `known`: it is decided this way already. Throws InputError where it cannot be decided, or is decided otherwise. */
export function requirePending(
  everywhere: readonly Found[],
  { id, to }: { id: string; to: Decision },
): { pending: FoundAction } | { known: FoundAction } {
  const verb = to === 'approved' ? 'approve' : 'reject';
  const pending = everywhere.find(({ state }) => state === 'pending');
  if (pending === undefined) return { known: requireDecided(everywhere, { id, to, verb }) };
  if (pending.kind === 'refused') {
    throw new InputError(`cannot ${verb} ${id}: ${pending.reason}`, { code: 'no-action' });
  }
  if (to === 'approved' && pending.action.type === redeployType && pending.action.service === undefined) {
    throw new InputError(`cannot approve ${id}: it names no service`, { code: 'no-action' });
  }
  const waiting = everywhere.find(({ state }) => state === 'approved');
  if (to === 'approved' && waiting !== undefined) {
    throw new InputError(
      `cannot approve ${id}: an earlier one of this id is approved, and still to be dispatched`,
      {
        code: 'waiting',
      },
    );
  }
  return { pending };
}

const alike: Readonly<Record<Decision, readonly ActionState[]>> = {
  approved: ['approved', 'running'],
  rejected: ['rejected'],
};

/** Open ones say more than those that have ended, which may be earlier ones. */
const order: readonly ActionState[] = ['running', 'approved', 'rejected', 'cancelled', 'failed', 'completed'];

function requireDecided(
  everywhere: readonly Found[],
  { id, to, verb }: { id: string; to: Decision; verb: string },
): FoundAction {
  const [current] = everywhere.toSorted((a, b) => rank(a) - rank(b));
  if (current === undefined) {
    throw new InputError(`there is no action ${id}: \`reeve action list\` shows them`, {
      code: 'unknown-action',
    });
  }
  if (current.kind === 'action' && alike[to].includes(current.state)) return current;
  throw new InputError(`cannot ${verb} ${id}: it is ${current.state} already`, { code: 'decided' });
}

function rank({ state, ...found }: Found): number {
  const updatedAt = found.kind === 'action' ? (found.action.updatedAt ?? 0) : 0;
  const isOpen = state === 'running' || state === 'approved';
  // The latest of what has ended.
  return isOpen ? order.indexOf(state) - 1e12 : -updatedAt + order.indexOf(state) / 10;
}
