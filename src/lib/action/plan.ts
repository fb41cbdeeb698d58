// What is to be done with what has been approved, and with what is running. Pure.
import {
  type Dispatched,
  earlierRuns,
  type Found,
  type FoundAction,
  type Handed,
  readDispatch,
  redeployType,
  renderClock,
} from '../actions/control/found.ts';
import { describeApproval, findApproval, markerKey } from '../deploy-runner/key.ts';
import { describeError, InputError } from '../errors.ts';
import { type Moment, upSinceMs } from '../host/moment.ts';
import { formatDuration } from '../time.ts';
import { findResults, type Reported } from './facts.ts';
import type { DispatchStep, FinishStep, RefuseStep, WaitStep, WithdrawStep } from './steps.ts';
import { addTransition } from './transition.ts';

export type DispatchFacts = {
  approved: readonly Found[];
  /** Ids in running, whatever lies there. */
  running: ReadonlySet<string>;
  /** By id: the keys of what has come to its end. */
  ended: ReadonlyMap<string, ReadonlySet<string>>;
};

/** Of each id one is under way at most. */
export function planDispatch({
  approved,
  running,
  ended,
}: DispatchFacts): (DispatchStep | RefuseStep | WaitStep)[] {
  return approved.filter(isOurs).map((found) => {
    if (running.has(found.id)) return { kind: 'wait', found, reason: earlierRuns };
    if (found.kind === 'refused') return refuseFile(found);
    const key = markerKey(found.action, found.bytes);
    const unfit = findUnfit(found, key);
    if (unfit !== undefined) return { kind: 'refuse', found, to: 'failed', reason: unfit };
    if (ended.get(found.id)?.has(key) === true) {
      const reason = 'this very approval has been carried out before: it has to be approved anew';
      return { kind: 'refuse', found, to: 'rejected', reason };
    }
    return { kind: 'dispatch', found, key, reason: describeApproval(found.action) };
  });
}

export type SettleFacts = {
  running: readonly Found[];
  /** By action id. */
  reported: ReadonlyMap<string, readonly Reported[]>;
  /** Nodes whose results could not all be looked for, and why. */
  unread: ReadonlyMap<string, string>;
  timeoutMs: number;
};

export function planSettle(
  { running, reported, unread, timeoutMs }: SettleFacts,
  now: Moment,
): (FinishStep | RefuseStep | WaitStep)[] {
  return running.filter(isOurs).map((found) => {
    if (found.kind === 'refused') return settleRefused(found, now, timeoutMs);
    const dispatched = readDispatch(found, new Date(now.atMs));
    const [first] = findResults(dispatched, found.action.node, reported.get(found.id) ?? []);
    if (first !== undefined) return finishBy(found, first);
    return settleUnheard(found, dispatched, { now, timeoutMs, problem: unread.get(found.action.node) });
  });
}

/** `everywhere`: all that lies under the id of what a node has been given. */
export type WithdrawFacts = readonly { handed: Handed; everywhere: readonly Found[] }[];

/** Where somebody takes a dispatched action back without looking at its node. What is not known to be that is left alone. */
export function planWithdraw(facts: WithdrawFacts): WithdrawStep[] {
  return facts.flatMap(({ handed, everywhere }): WithdrawStep[] => {
    if (everywhere.some(({ state }) => state === 'approved' || state === 'running')) return [];
    const key = markerKey(handed.action, handed.bytes);
    const found = everywhere.find(
      (one): one is FoundAction =>
        one.kind === 'action' && isTakenBack(one) && markerKey(one.action, one.bytes) === key,
    );
    if (found === undefined) return [];
    return [{ kind: 'withdraw', found, handed, reason: `somebody has taken it back: it is ${found.state}` }];
  });
}

/** What is pending has to name its approval: without one nobody may have approved it yet. */
function isTakenBack({ state, action }: FoundAction): boolean {
  if (state === 'pending') return findApproval(action) !== undefined;
  return state === 'rejected' || state === 'cancelled';
}

/** Of another type is another executor's; what cannot be read is nobody's. */
function isOurs(found: Found): boolean {
  return found.kind === 'refused' || found.action.type === redeployType;
}

/** What is no file at all stays where it is: it is not known what else it is. */
function refuseFile(found: Found & { kind: 'refused' }): RefuseStep | WaitStep {
  const { reason } = found;
  if (found.isFile) return { kind: 'refuse', found, to: 'failed', reason };
  return { kind: 'wait', found, reason, isTrouble: true };
}

function findUnfit({ action, bytes }: FoundAction, key: string): string | undefined {
  if (action.service === undefined) return 'it names no service';
  try {
    addTransition(bytes, {
      from: 'approved',
      to: 'running',
      timestamp: 0,
      by: 'system',
      key,
      clock: longClock,
    });
    return undefined;
  } catch (error) {
    if (error instanceof InputError) return describeError(error);
    throw error;
  }
}

/** None is written longer. */
const longClock = renderClock({
  atMs: 8_640_000_000_000_000,
  boot: { id: 'x'.repeat(36), uptimeMs: 8_640_000_000_000.125 },
});

function settleRefused(
  found: Found & { kind: 'refused' },
  now: Moment,
  timeoutMs: number,
): RefuseStep | WaitStep {
  const { reason } = found;
  if (!found.isFile) return { kind: 'wait', found, reason, isTrouble: true };
  // The second is the kernel's: whoever has written the file can set the first to a time to come.
  const sinceMs = Math.min(found.about.mtimeMs, found.about.ctimeMs);
  const isOver = now.atMs - sinceMs >= timeoutMs;
  return isOver ? { kind: 'refuse', found, to: 'failed', reason } : { kind: 'wait', found, reason };
}

function finishBy(found: FoundAction, reported: Reported): FinishStep {
  const { status, reason, exitCode } = reported.result;
  const code = exitCode === undefined ? '' : `, exit code ${exitCode}`;
  const words = reason === undefined ? '' : `: ${reason}`;
  return {
    ...{ kind: 'finish', found, to: status, reported },
    reason: `node ${found.action.node} reports ${status}${code}${words}`,
  };
}

/** A clock that is set right a little tells nobody anything. */
const patienceMs = 60_000;

function settleUnheard(
  found: FoundAction,
  { since }: Dispatched,
  { now, timeoutMs, problem }: { now: Moment; timeoutMs: number; problem: string | undefined },
): FinishStep | WaitStep {
  const waitedMs = upSinceMs(since, now);
  const { node } = found.action;
  if (waitedMs >= timeoutMs) {
    // It has to end, whatever a node has made of what it may write into.
    const why = problem === undefined ? '' : ` that can be read: ${problem}`;
    const reason = `node ${node} has reported nothing for ${formatDuration(timeoutMs)}${why}`;
    return { kind: 'finish', found, to: 'failed', reason };
  }
  if (problem !== undefined) return { kind: 'wait', found, reason: problem, isTrouble: true };
  const aheadMs = since.atMs - now.atMs;
  if (waitedMs === 0 && aheadMs > patienceMs) {
    const reason = `node ${node} has not reported yet, and this machine's clock is ${formatDuration(aheadMs)} behind the time at which it was asked to`;
    return { kind: 'wait', found, reason, isTrouble: true };
  }
  const waited = formatDuration(Math.round(waitedMs / 1000) * 1000);
  return { kind: 'wait', found, reason: `node ${node} has not reported yet, after ${waited}` };
}
