// The shapes of a job's records on disk, checked by hand: every job's process reads them. None of them makes the directory of a job
// that has been closed again, as it would be a slot that nobody has.

import type { TerminalStatus } from '../ploy/wire.ts';
import { defineDocument } from '../state/document.ts';
import { isRecord, requireText } from '../state/shape.ts';
import type { JobCancel, JobClaim, JobCompletion, JobPhase, JobProgress } from './records.ts';

const phases: Readonly<Record<JobPhase, true>> = {
  preparing: true,
  creating: true,
  starting: true,
  running: true,
  ended: true,
};
const settlements: Readonly<Record<NonNullable<JobCompletion['settled']>['how'], true>> = {
  acknowledged: true,
  'already-terminal': true,
  refused: true,
};
const statuses: Readonly<Record<TerminalStatus, true>> = {
  Success: true,
  Fail: true,
  Error: true,
  Cancelled: true,
};

export const claimDocument = defineDocument<JobClaim>({
  version: 1,
  needsDirectory: true,
  isCompact: true,
  parse: ({ version: _, ...raw }) => {
    for (const name of ['source', 'claimedAt', 'runId', 'jobId']) requireText(raw, name);
    return raw as unknown as JobClaim;
  },
});

/** What does not stand here is only shown to people, or sent as it is. */
export const progressDocument = defineDocument<JobProgress>({
  version: 1,
  needsDirectory: true,
  parse: ({ version: _, ...raw }) => {
    for (const name of ['phase', 'since']) requireText(raw, name);
    const { phase, containerId, cancelled, logs, end, steps } = raw;
    requireShape('phase', isOneOf(phases, phase));
    requireShape('containerId', containerId === undefined ? phase !== 'ended' : isContainerId(containerId));
    requireShape('cancelled', cancelled === undefined || hasTexts(cancelled, ['at', 'reason', 'by']));
    requireShape('logs', isLogProgress(logs));
    requireShape('end', end === undefined || isEnd(end));
    requireShape('steps', Array.isArray(steps) && steps.every((step) => hasTexts(step, ['name', 'at'])));
    return raw as unknown as JobProgress;
  },
});

export const completionDocument = defineDocument<JobCompletion>({
  version: 1,
  needsDirectory: true,
  parse: ({ version: _, ...raw }) => {
    requireText(raw, 'decidedAt');
    const { body, attempts, settled } = raw;
    requireShape('body', isBody(body));
    requireShape('attempts', isOffset(attempts));
    // One that only looks settled would never be told.
    requireShape('settled', settled === undefined || isSettled(settled));
    return raw as unknown as JobCompletion;
  },
});

export const cancelDocument = defineDocument<JobCancel>({
  version: 1,
  parse: ({ version: _, ...raw }) => {
    for (const name of ['at', 'reason', 'by']) requireText(raw, name);
    return raw as unknown as JobCancel;
  },
});

function requireShape(name: string, isRight: boolean): void {
  if (!isRight) throw new TypeError(`${name} has the wrong shape`);
}

function isOneOf(words: Readonly<Record<string, true>>, value: unknown): boolean {
  return typeof value === 'string' && Object.hasOwn(words, value);
}

function isLogProgress(value: unknown): boolean {
  if (!isRecord(value) || !isOffset(value['nextChunk']) || !isOffset(value['sentBytes'])) return false;
  const { pending } = value;
  return pending === undefined || hasOffsets(pending, ['chunkNo', 'fromBytes', 'toBytes']);
}

function isEnd(value: unknown): boolean {
  return hasTexts(value, ['error']) && Number.isFinite((value as { exitCode?: unknown }).exitCode);
}

function isBody(value: unknown): boolean {
  if (!isRecord(value) || !isOneOf(statuses, value['status'])) return false;
  return value['stats'] === undefined || isRecord(value['stats']);
}

function isSettled(value: unknown): boolean {
  return hasTexts(value, ['at']) && isOneOf(settlements, (value as { how?: unknown }).how);
}

/** It becomes part of a path of the engine's. */
function isContainerId(value: unknown): boolean {
  return typeof value === 'string' && /^[0-9A-Za-z]{1,128}$/.test(value);
}

function hasTexts(value: unknown, names: readonly string[]): boolean {
  return isRecord(value) && names.every((name) => typeof value[name] === 'string');
}

function hasOffsets(value: unknown, names: readonly string[]): boolean {
  return isRecord(value) && names.every((name) => isOffset(value[name]));
}

function isOffset(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
