// The records of a job on this node: a directory for each open job, moved as a whole when the job has ended. An open
// directory is a slot: there are no other books about them. Every transition is written here before it is made.
import { join } from 'node:path';
import type { Paths } from '../config/paths.ts';
import { safeFileId } from '../ids.ts';
import type { CompletionBody } from '../ploy/wire.ts';

/** Where a job comes from: claimed from the server, started by `/v1/run/start`, or found as a container of the original. */
export type JobSource = 'claim' | 'api' | 'adopted';

/** `claim.json`: written before anything starts, never changed. */
export type JobClaim = {
  source: JobSource;
  claimedAt: string;
  /** Of the server, as it stands there. */
  runId: string;
  jobId: string;
  /** Raw: what was claimed, for `job run` to parse. Absent for what was adopted. */
  payload?: unknown;
  /** Adopted only: nothing but this container is known of the job. */
  containerId?: string;
};

/** What a job does now. After a crash the next process goes on from here; the first two start it over. */
export type JobPhase =
  /** Workspace, bundles and image are made ready. No container has been asked for. */
  | 'preparing'
  /** Written before the container is made: it may be there or not. */
  | 'creating'
  /** Written before the container is started. If it is not there from here on, it is gone, and it is never made again. */
  | 'starting'
  | 'running'
  /** The container has ended; `end` says how. Diff, artifacts and the rest of the logs go out. */
  | 'ended';

export type JobProgress = {
  phase: JobPhase;
  /** When this phase began. */
  since: string;
  containerId?: string;
  /** Why the job is being stopped, once that is decided. */
  cancelled?: { at: string; reason: string; by: 'server' | 'operator' | 'api' };
  /** Offsets in the stream of the container's log as NDJSON frames, in bytes. */
  logs: LogProgress;
  end?: ContainerEnd;
  /** When the server has taken the job's diff, or it was found too large to be taken. */
  diffSettledAt?: string;
  /** What the container was last seen to use while it ran, of its memory the most. */
  usage?: { cpuNs: number; memoryBytes: number };
  /** Instants of this job's steps, for `job show` and for the figures. */
  steps: readonly JobStep[];
};

export type LogProgress = {
  /** The number of the next chunk that has no number yet. */
  nextChunk: number;
  /** All before this is with the server. */
  sentBytes: number;
  /** Written before it is uploaded: after a crash the same bytes go out under the same number. */
  pending?: { chunkNo: number; fromBytes: number; toBytes: number };
  /** The last chunk has been accepted, or given up for a reason that was told. */
  closed: boolean;
};

export type ContainerEnd = {
  exitCode: number;
  oomKilled: boolean;
  error: string;
  startedAt?: string;
  finishedAt?: string;
};

export type JobStep = { name: string; at: string; ms: number };

/** `completion.json`: written before it is sent, replayed until acknowledged. */
export type JobCompletion = {
  body: CompletionBody;
  decidedAt: string;
  attempts: number;
  lastAttemptAt?: string;
  lastError?: string;
  /** The end that the server refused while it believed the job to run: `body`, an error, has taken its place. */
  refused?: { at: string; body: CompletionBody; answer: string };
  /** Absent until the server has it, or has refused it for good. */
  settled?: { at: string; how: 'acknowledged' | 'already-terminal' | 'refused'; answer?: string };
};

/** `cancel.json`: written by `job cancel` and `/v1/run/stop`, seen by `job run`. */
export type JobCancel = { at: string; reason: string; by: 'operator' | 'api' };

export function openJobsDir({ stateDir }: Pick<Paths, 'stateDir'>): string {
  return join(stateDir, 'jobs');
}

/** Ended jobs, for people; `claim` lets go of old ones. */
export function endedJobsDir({ stateDir }: Pick<Paths, 'stateDir'>): string {
  return join(stateDir, 'jobs-ended');
}

/** The name of a job's directory, of its unit's instance and of its lock. */
export function jobKey(jobId: string): string {
  return safeFileId(jobId);
}
