// The control side of the tree as plain values: what lies in its directories, and when it went to its node.
import type { Stats } from 'node:fs';
import type { Action } from '../../deploy-runner/action.ts';
import { findApproval, markerKey } from '../../deploy-runner/key.ts';
import type { ActionState } from '../../deploy-runner/layout.ts';
import type { Moment } from '../../host/moment.ts';

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

/** What a node is given: as it lies in the node's directory. */
export type Handed = { node: string; id: string; action: Action; bytes: Buffer };

/** The only type that is carried out by file; others are another executor's. */
export const redeployType = 'redeploy';

/** Of each id one is under way at most. */
export const earlierRuns = 'an earlier one of this id is running';

export type Dispatched = {
  /** Undefined where somebody else has dispatched it, and it names no approval. */
  key?: string;
  since: Moment;
  /** What has come before is another dispatch's, where no key tells. By the clock that files get their times from. */
  fromMs: number;
};

/** When it went to its node, and under which key, as the file itself tells. What it says of a time to come is not believed. */
export function readDispatch({ action, state, bytes, about }: FoundAction, now: Date): Dispatched {
  const last = action.transitions.findLast(({ to }) => to === 'running');
  const { key: stored, clock } = readStored(bytes);
  const key = stored ?? (findApproval(action) === undefined ? undefined : markerKey(action, bytes));
  const told = [clock?.atMs, toMs(last?.timestamp), toMs(action.updatedAt), about.mtimeMs, about.ctimeMs];
  const times = told.filter((time) => time !== undefined);
  // Where all of them are to come it is this clock that was put back.
  const atMs = times.find((time) => time <= now.getTime()) ?? times[0] ?? now.getTime();
  const isOwn = clock !== undefined && atMs === clock.atMs;
  return {
    ...(key === undefined ? {} : { key }),
    since: { atMs, ...(clock?.boot === undefined ? {} : { boot: clock.boot }) },
    fromMs: isOwn ? atMs : findFirstResultMs(atMs, state === 'running' ? about : undefined),
  };
}

/** Others write down whole seconds: within that one it is their file that tells when it came there. */
function findFirstResultMs(atMs: number, about: Stats | undefined): number {
  if (atMs % 1000 !== 0) return atMs;
  const ctimeMs = about?.ctimeMs ?? Number.NaN;
  return ctimeMs >= atMs && ctimeMs < atMs + 1000 ? ctimeMs : atMs + 1000;
}

/** Unix seconds, or an instant as text, which is UTC where it does not say so. Undefined where it is none. */
export function toMs(timestamp: number | string | undefined): number | undefined {
  if (timestamp === undefined) return undefined;
  const raw = typeof timestamp === 'number' ? timestamp * 1000 : timestamp.replace(/T[\d:.]+$/, '$&Z');
  const ms = new Date(raw).getTime();
  return Number.isNaN(ms) ? undefined : ms;
}

/** How a dispatch of ours is written down. */
export type DispatchClock = { at_ms: number; boot?: string; uptime_ms?: number };

export function renderClock({ atMs, boot }: Moment): DispatchClock {
  return { at_ms: atMs, ...(boot === undefined ? {} : { boot: boot.id, uptime_ms: boot.uptimeMs }) };
}

/** Of the last transition to running: the bytes that it was made from are no longer there. */
function readStored(bytes: Buffer): { key?: string; clock?: Moment } {
  const { transition_history: history } = JSON.parse(bytes.toString('utf8')) as {
    transition_history?: ({ to?: unknown; key?: unknown; clock?: unknown } | null)[] | null;
  };
  const last = history?.findLast((one) => one?.to === 'running');
  const clock = parseClock(last?.clock);
  return {
    ...(typeof last?.key === 'string' ? { key: last.key } : {}),
    ...(clock === undefined ? {} : { clock }),
  };
}

function parseClock(raw: unknown): Moment | undefined {
  const { at_ms: atMs, boot: id, uptime_ms: uptimeMs } = (raw ?? {}) as Record<string, unknown>;
  if (typeof atMs !== 'number' || toMs(atMs / 1000) === undefined) return undefined;
  return {
    atMs,
    ...(typeof id === 'string' && typeof uptimeMs === 'number' ? { boot: { id, uptimeMs } } : {}),
  };
}
