// One more step in the history of an action, put into its file. All that others have written there stays. Pure.
import type { DispatchClock } from '../actions/control/found.ts';
import { parseAction } from '../deploy-runner/action.ts';
import type { ActionState } from '../deploy-runner/layout.ts';
import { maxActionBytes } from '../deploy-runner/names.ts';
import { InputError } from '../errors.ts';

export type NewTransition = {
  from: ActionState;
  to: ActionState;
  /** Unix seconds. */
  timestamp: number;
  by: string;
  reason?: string;
  /** Of the marker, which the file's own bytes no longer give once it has gone on. */
  key?: string;
  /** When it was, more exactly than others write it down. */
  clock?: DispatchClock;
};

const longestReason = 1000;

/** What later steps need: an action that has been let in can always be brought to its end. */
const spareBytes: Readonly<Record<ActionState, number>> = {
  pending: 0,
  approved: 12 * 1024,
  running: 8 * 1024,
  rejected: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
};

/** Throws InputError where the file would get too large to be read again. Assumes that `bytes` are an action's. */
export function addTransition(
  bytes: Uint8Array,
  { reason, key, clock, ...step }: NewTransition,
  more: Readonly<Record<string, unknown>> = {},
): string {
  const raw = JSON.parse(Buffer.from(bytes).toString('utf8')) as Record<string, unknown>;
  const { transition_history: history } = raw;
  const entry = {
    ...step,
    ...(reason === undefined || reason === '' ? {} : { reason: reason.slice(0, longestReason) }),
    ...(key === undefined ? {} : { key }),
    ...(clock === undefined ? {} : { clock }),
  };
  const next = {
    ...raw,
    ...{ status: step.to, updated_at: step.timestamp, ...more },
    transition_history: [...(Array.isArray(history) ? history : []), entry],
  };
  const limit = maxActionBytes - spareBytes[step.to];
  const text = [2, 0]
    .map((indent) => `${JSON.stringify(next, null, indent)}\n`)
    .find((one) => fits(one, limit));
  if (text === undefined) throw new InputError(`it is too large: it would have more than ${limit} bytes`);
  parseAction(Buffer.from(text));
  return text;
}

function fits(text: string, limit: number): boolean {
  return Buffer.byteLength(text) <= limit;
}

/** Unix seconds, and none of those that an earlier approval of the id has: its key would be the same. */
export function approvalTime(now: Date, earlier: ReadonlySet<number>): number {
  let timestamp = Math.floor(now.getTime() / 1000);
  while (earlier.has(timestamp)) timestamp += 1;
  return timestamp;
}
