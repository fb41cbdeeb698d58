// What is to be done with what has been approved, and with what is running. Pure.
import { findApproval, markerKey } from '../deploy-runner/key.ts';
import { describeError, InputError } from '../errors.ts';
import { formatDuration } from '../time.ts';
import {
  type Dispatched,
  type Found,
  type FoundAction,
  findResults,
  type Reported,
  readDispatch,
  redeployType,
} from './facts.ts';
import type { DispatchStep, FinishStep, RefuseStep, WaitStep } from './steps.ts';
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
    if (running.has(found.id)) return { kind: 'wait', found, reason: 'an earlier one of this id is running' };
    if (found.kind === 'refused') return refuseFile(found);
    const unfit = findUnfit(found);
    if (unfit !== undefined) return { kind: 'refuse', found, to: 'failed', reason: unfit };
    const key = markerKey(found.action, found.bytes);
    if (ended.get(found.id)?.has(key) === true) {
      const reason = 'this very approval has been carried out before: it has to be approved anew';
      return { kind: 'refuse', found, to: 'rejected', reason };
    }
    return { kind: 'dispatch', found, key, reason: describeApproval(found) };
  });
}

export type SettleFacts = {
  running: readonly Found[];
  /** By action id. */
  reported: ReadonlyMap<string, readonly Reported[]>;
  timeoutMs: number;
};

export function planSettle(
  { running, reported, timeoutMs }: SettleFacts,
  now: Date,
): (FinishStep | RefuseStep | WaitStep)[] {
  return running.filter(isOurs).map((found) => {
    if (found.kind === 'refused') return settleRefused(found, now, timeoutMs);
    const dispatched = readDispatch(found);
    const [first] = findResults(dispatched, found.action.node, reported.get(found.id) ?? []);
    if (first !== undefined) return finishBy(found, first);
    return settleUnheard(found, dispatched, { now, timeoutMs });
  });
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

function findUnfit({ action, bytes }: FoundAction): string | undefined {
  if (action.service === undefined) return 'it names no service';
  try {
    addTransition(bytes, { from: 'approved', to: 'running', timestamp: 0, by: 'system' });
    return undefined;
  } catch (error) {
    if (error instanceof InputError) return describeError(error);
    throw error;
  }
}

function describeApproval({ action }: FoundAction): string {
  const approval = findApproval(action);
  return approval === undefined ? 'approved' : `approved by ${approval.by}`;
}

function settleRefused(
  found: Found & { kind: 'refused' },
  now: Date,
  timeoutMs: number,
): RefuseStep | WaitStep {
  const { reason } = found;
  if (!found.isFile) return { kind: 'wait', found, reason, isTrouble: true };
  const isOver = now.getTime() - found.about.mtimeMs >= timeoutMs;
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

function settleUnheard(
  found: FoundAction,
  { atMs }: Dispatched,
  { now, timeoutMs }: { now: Date; timeoutMs: number },
): FinishStep | WaitStep {
  const waitedMs = now.getTime() - atMs;
  const { node } = found.action;
  if (waitedMs >= timeoutMs) {
    const reason = `node ${node} has reported nothing for ${formatDuration(timeoutMs)}`;
    return { kind: 'finish', found, to: 'failed', reason };
  }
  const waited = formatDuration(Math.max(0, Math.round(waitedMs / 1000) * 1000));
  return { kind: 'wait', found, reason: `node ${node} has not reported yet, after ${waited}` };
}
