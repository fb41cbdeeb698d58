// The control side of the tree as plain values: what lies in its directories, and what nodes have reported.
import type { Stats } from 'node:fs';
import type { Action } from '../deploy-runner/action.ts';
import type { ActionResult } from '../deploy-runner/event.ts';
import { findApproval, markerKey } from '../deploy-runner/key.ts';
import type { ActionState } from '../deploy-runner/layout.ts';

/** What lies under an action's name in one of the directories. */
export type Found = FoundAction | FoundRefused;

export type FoundAction = FoundFile & { kind: 'action'; action: Action };

export type FoundRefused = { kind: 'refused'; state: ActionState; id: string; reason: string } & (
  | { isFile: true; bytes: Buffer; about: Stats }
  /** A link, a pipe, a directory, or too large a file. */
  | { isFile: false }
);

/** `about`: of the very file that was read. */
export type FoundFile = { state: ActionState; id: string; bytes: Buffer; about: Stats };

export type FoundState = {
  /** In the order of their ids. */
  found: readonly Found[];
  /** How many names are no action's. */
  foreign: number;
  /** There are more than are looked at. */
  isCut: boolean;
};

/** A result as it lies among the events of its node. */
export type Reported = {
  name: string;
  result: ActionResult;
  /** By this machine's clock. */
  arrivedAtMs: number;
};

/** The executor gives up then: a node has reported before. */
export const usualTimeoutMs = 900_000;

/** The only type that is carried out by file; others are another executor's. */
export const redeployType = 'redeploy';

export type Dispatched = {
  /** Undefined where somebody else has dispatched it, and it names no approval. */
  key?: string;
  atMs: number;
};

/** When it went to its node, and under which key, as the file itself tells. */
export function readDispatch({ action, bytes, about }: FoundAction): Dispatched {
  const last = action.transitions.findLast(({ to }) => to === 'running');
  const stored = readStoredKey(bytes);
  const key = stored ?? (findApproval(action) === undefined ? undefined : markerKey(action, bytes));
  const seconds = typeof last?.timestamp === 'number' ? last.timestamp : action.updatedAt;
  return {
    ...(key === undefined ? {} : { key }),
    atMs: seconds === undefined ? about.mtimeMs : seconds * 1000,
  };
}

/** Of the last transition to running: the bytes that it was made from are no longer there. */
function readStoredKey(bytes: Buffer): string | undefined {
  const { transition_history: history } = JSON.parse(bytes.toString('utf8')) as {
    transition_history?: { to?: unknown; key?: unknown }[];
  };
  const key = history?.findLast(({ to }) => to === 'running')?.key;
  return typeof key === 'string' ? key : undefined;
}

/** What came of this dispatch and of no other of the same id, oldest first. */
export function findResults(
  dispatched: Dispatched,
  node: string,
  reported: readonly Reported[],
): readonly Reported[] {
  return reported.filter(({ result, arrivedAtMs }) => {
    if (result.node !== node) return false;
    if (result.key !== undefined && dispatched.key !== undefined) return result.key === dispatched.key;
    // A whole second later, as far as a timestamp of whole seconds tells: a result that is too early is another one's.
    return arrivedAtMs >= dispatched.atMs + 1000;
  });
}
