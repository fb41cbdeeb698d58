// The shapes of a job's records on disk, checked by hand: every job's process reads them.
import { defineDocument } from '../state/document.ts';
import { isRecord, requireText } from '../state/shape.ts';
import type { JobCancel, JobClaim, JobCompletion, JobProgress } from './records.ts';

export const claimDocument = defineDocument<JobClaim>({
  version: 1,
  parse: ({ version: _, ...raw }) => {
    for (const name of ['source', 'claimedAt', 'runId', 'jobId']) requireText(raw, name);
    return raw as unknown as JobClaim;
  },
});

export const progressDocument = defineDocument<JobProgress>({
  version: 1,
  parse: ({ version: _, ...raw }) => {
    for (const name of ['phase', 'since']) requireText(raw, name);
    const { logs, steps } = raw;
    if (!isRecord(logs) || !isOffset(logs['nextChunk']) || !isOffset(logs['sentBytes'])) {
      throw new TypeError('logs has the wrong shape');
    }
    if (!Array.isArray(steps)) throw new TypeError('steps is no list');
    return raw as unknown as JobProgress;
  },
});

export const completionDocument = defineDocument<JobCompletion>({
  version: 1,
  parse: ({ version: _, ...raw }) => {
    requireText(raw, 'decidedAt');
    requireText(raw['body'], 'status');
    if (!isOffset(raw['attempts'])) throw new TypeError('attempts is no number');
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

function isOffset(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
