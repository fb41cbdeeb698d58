// One job in one process: its records as they stand on disk, and what is opened for it. Whoever has a session holds the lock
// of the job. Every change of the progress goes through `record`, in order.
import type { JobsConfig } from '../config/config.ts';
import type { Context } from '../context.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import type { Engine } from '../docker/types.ts';
import { describeError, InternalError, UnavailableError } from '../errors.ts';
import { type JobRecords, writeProgress } from '../jobs/book.ts';
import type { JobClaim, JobCompletion, JobProgress } from '../jobs/records.ts';
import type { Execution } from '../ploy/plan.ts';
import type { ClaimPayload, RunEvent } from '../ploy/wire.ts';

/** What is to be run, once the claim and its spec have been understood. */
export type Understood =
  | { kind: 'work'; payload: ClaimPayload; execution: Execution; gatesDisabled: boolean }
  /** Nothing but its container is known. */
  | { kind: 'adopted' }
  | { kind: 'refused'; reason: string };

export type JobSession = {
  readonly ctx: Context;
  readonly jobs: JobsConfig;
  readonly place: JobRecords;
  readonly claim: JobClaim;
  readonly controlPlane: ControlPlane;
  readonly engine: Engine;
  readonly understood: Understood;
  readonly startedAtMs: number;
  progress: JobProgress;
  completion: JobCompletion | undefined;
  /** Throws InternalError where there is none yet. */
  readonly containerId: string;
  logPaths: { stdout: string; stderr: string } | undefined;
  /** In memory; on disk with the next record. */
  change(fields: Partial<JobProgress>): void;
  record(fields: Partial<JobProgress>): Promise<void>;
  /** How long the work took is told with the next record. */
  time<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** A message to us and an event to the server, which may miss it. */
  tell(level: RunEvent['level'], message: string): Promise<void>;
  /** Throws UnavailableError once this process has been told to stop. */
  requireGoingOn(): void;
};

export type SessionParts = Pick<
  JobSession,
  'ctx' | 'jobs' | 'place' | 'claim' | 'controlPlane' | 'engine' | 'understood'
>;

export function createSession(parts: SessionParts): JobSession {
  const { ctx, place, claim, controlPlane } = parts;
  const now = (): string => ctx.clock.now().toISOString();
  let writing: Promise<void> = Promise.resolve();
  const session: JobSession = {
    ...parts,
    startedAtMs: ctx.clock.now().getTime(),
    progress: place.progress ?? newProgress(claim, now()),
    completion: place.completion,
    logPaths: undefined,
    get containerId() {
      const id = session.progress.containerId ?? claim.containerId;
      if (id === undefined) throw new InternalError(`job ${claim.jobId} has no container`);
      return id;
    },
    change: (fields) => {
      const since =
        fields.phase === undefined || fields.phase === session.progress.phase ? {} : { since: now() };
      session.progress = { ...session.progress, ...since, ...fields };
    },
    record: async (fields) => {
      session.change(fields);
      // What is newest when its turn comes is what is written.
      const mine = writing.catch(() => {}).then(async () => await writeProgress(place, session.progress));
      writing = mine;
      await mine;
    },
    time: async (name, work) => {
      const at = ctx.clock.now();
      try {
        return await work();
      } finally {
        const ms = Math.max(0, ctx.clock.now().getTime() - at.getTime());
        session.change({ steps: [...session.progress.steps, { name, at: at.toISOString(), ms }] });
      }
    },
    tell: async (level, message) => {
      ctx.log[level === 'warn' ? 'warning' : level](message, { job: claim.jobId });
      const event = { job_id: claim.jobId, time: now(), level, message };
      await controlPlane.sendEvents(claim.runId, [event]).catch((error: unknown) => {
        ctx.log.debug(`cannot tell the server: ${describeError(error)}`);
      });
    },
    requireGoingOn: () => {
      if (!ctx.signal.aborted) return;
      throw new UnavailableError(`cannot go on with job ${claim.jobId}: interrupted`, {
        code: 'interrupted',
      });
    },
  };
  return session;
}

function newProgress({ source, containerId }: JobClaim, since: string): JobProgress {
  const isAdopted = source === 'adopted';
  return {
    phase: isAdopted ? 'running' : 'preparing',
    since,
    ...(containerId === undefined ? {} : { containerId }),
    logs: { nextChunk: 0, sentBytes: 0, closed: false },
    steps: [],
  };
}
