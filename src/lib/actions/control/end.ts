// How an action has ended, as its own file tells; others who move it may write down less, or nothing. Pure.
import type { ActionState } from '../../deploy-runner/layout.ts';
import { type Found, type FoundAction, toMs } from './found.ts';

/** What is not told is null; `at` is an ISO instant. */
export type End = { at: string | null; by: string | null; reason: string | null };

const openStates: ReadonlySet<ActionState> = new Set(['pending', 'approved', 'running']);

export function isOpen({ state }: Pick<Found, 'state'>): boolean {
  return openStates.has(state);
}

/** By the last step into where it is. Assumes that it is not open. */
export function readEnd({ state, action, bytes }: FoundAction): End {
  const index = action.transitions.findLastIndex(({ to }) => to === state);
  const last = action.transitions[index];
  if (last === undefined) return { at: toInstant(action.updatedAt), by: null, reason: null };
  return { at: toInstant(last.timestamp), by: last.by, reason: readReasons(bytes)[index] ?? null };
}

/** Of its steps. Ours, which others' readers of the history do not know. */
export function readReasons(bytes: Buffer): (string | null)[] {
  const { transition_history: history } = JSON.parse(bytes.toString('utf8')) as {
    transition_history?: { reason?: unknown }[] | null;
  };
  return (history ?? []).map(({ reason }) => (typeof reason === 'string' ? reason : null));
}

/** Null where it is none. */
export function toInstant(timestamp: number | string | undefined): string | null {
  const ms = toMs(timestamp);
  return ms === undefined ? null : new Date(ms).toISOString();
}
