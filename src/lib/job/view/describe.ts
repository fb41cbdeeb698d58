// A job as `--json` has it: the same fields whatever is known of it. Of what was claimed only what is named here: the rest
// may hold secrets. Pure.
import type { JobSource } from '../../jobs/records.ts';
import { isRecord } from '../../state/shape.ts';
import type { JobFacts, RecordName } from './gather.ts';

export type JobSummary = {
  id: string;
  run: string | null;
  name: string | null;
  source: JobSource | null;
  open: boolean;
  /** A process of ours is at it. */
  held: boolean;
  phase: string | null;
  since: string | null;
  /** As the server is told, or has been. */
  status: string | null;
  exitCode: number | null;
  settled: 'acknowledged' | 'already-terminal' | 'refused' | null;
  cancelled: boolean;
  claimedAt: string | null;
  endedAt: string | null;
  containerId: string | null;
};

export type JobDetails = JobSummary & {
  key: string;
  type: string | null;
  image: string | null;
  repository: string | null;
  ref: string | null;
  logs: {
    chunks: number;
    sentBytes: number;
    closed: boolean;
    pending: { chunkNo: number; bytes: number } | null;
  } | null;
  end: {
    exitCode: number;
    oomKilled: boolean;
    error: string;
    startedAt: string | null;
    finishedAt: string | null;
  } | null;
  completion: {
    decidedAt: string;
    attempts: number;
    lastAttemptAt: string | null;
    lastError: string | null;
    settledAt: string | null;
    answer: string | null;
    error: string | null;
  } | null;
  cancel: { at: string; reason: string; by: 'server' | 'operator' | 'api' } | null;
  steps: readonly { name: string; at: string; ms: number }[];
  damaged: readonly RecordName[];
};

export function describeJob(facts: JobFacts): JobSummary {
  const { claim, progress, completion, cancel, isOpen, key } = facts;
  return {
    id: claim?.jobId ?? key,
    run: claim?.runId ?? null,
    name: readText(claim?.payload, 'job_name'),
    source: claim?.source ?? null,
    open: isOpen,
    held: facts.isHeld,
    phase: progress?.phase ?? null,
    since: progress?.since ?? null,
    ...describeStatus(facts),
    cancelled: cancel !== undefined || progress?.cancelled !== undefined,
    claimedAt: claim?.claimedAt ?? null,
    endedAt: isOpen ? null : (completion?.settled?.at ?? completion?.decidedAt ?? facts.changedAt),
    containerId: progress?.containerId ?? claim?.containerId ?? null,
  };
}

function describeStatus({
  completion,
  progress,
}: JobFacts): Pick<JobSummary, 'status' | 'exitCode' | 'settled'> {
  return {
    status: completion?.body.status ?? null,
    exitCode: completion?.body.exit_code ?? progress?.end?.exitCode ?? null,
    settled: completion?.settled?.how ?? null,
  };
}

export function describeDetails(facts: JobFacts): JobDetails {
  const { claim, progress, key } = facts;
  return {
    ...describeJob(facts),
    key,
    type: readText(claim?.payload, 'job_type'),
    image: readText(claim?.payload, 'job_image'),
    repository: hidePassword(readText(claim?.payload, 'repo_url')),
    ref: readText(claim?.payload, 'base_ref'),
    logs: describeLogs(facts),
    end: describeEnd(facts),
    completion: describeCompletion(facts),
    cancel: progress?.cancelled ?? facts.cancel ?? null,
    steps: progress?.steps ?? [],
    damaged: facts.damaged,
  };
}

function describeLogs({ progress }: JobFacts): JobDetails['logs'] {
  if (progress === undefined) return null;
  const { nextChunk, sentBytes, pending, closed } = progress.logs;
  return {
    chunks: nextChunk,
    sentBytes,
    closed,
    pending:
      pending === undefined ? null : { chunkNo: pending.chunkNo, bytes: pending.toBytes - pending.fromBytes },
  };
}

function describeEnd({ progress }: JobFacts): JobDetails['end'] {
  if (progress?.end === undefined) return null;
  const { exitCode, oomKilled, error, startedAt, finishedAt } = progress.end;
  return { exitCode, oomKilled, error, startedAt: startedAt ?? null, finishedAt: finishedAt ?? null };
}

function describeCompletion({ completion }: JobFacts): JobDetails['completion'] {
  if (completion === undefined) return null;
  const { decidedAt, attempts, lastAttemptAt, lastError, settled, body } = completion;
  return {
    decidedAt,
    attempts,
    lastAttemptAt: lastAttemptAt ?? null,
    lastError: lastError ?? null,
    settledAt: settled?.at ?? null,
    answer: settled?.answer ?? null,
    error: body.stats?.error ?? null,
  };
}

/** What was claimed has not been checked. */
function readText(payload: unknown, name: string): string | null {
  const value = isRecord(payload) ? payload[name] : undefined;
  return typeof value === 'string' && value !== '' ? value : null;
}

/** `https://user:token@host/…?token=…` without its credentials. */
function hidePassword(url: string | null): string | null {
  if (url === null) return null;
  return url.replace(/[?#].*$/s, '').replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/]*@/i, '$1');
}
