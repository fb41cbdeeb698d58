// The node's jobs as one plain value: what the engine has, and what our records say.
import type { ContainerState } from '../docker/types.ts';

/** A container with both of a job's labels. */
export type JobContainer = {
  id: string;
  runId: string;
  jobId: string;
  /** Of the job's directory. */
  key: string;
  state: ContainerState;
  /** Only of one that has ended and has no records. */
  end?: { exitCode: number; startedAt: Date | undefined; finishedAt: Date | undefined };
  /** Why it could not be looked at. */
  trouble?: string;
};

export type OpenJob = {
  key: string;
  /** Another process has the job. */
  isHeld: boolean;
  claim: 'whole' | 'lost';
  /** A completion that no answer has settled, or one that only has to be closed. */
  completion: 'none' | 'undelivered' | 'settled';
  /** Why its records cannot be used. */
  trouble?: string;
};

export type ClaimFacts = {
  containers: readonly JobContainer[];
  open: readonly OpenJob[];
  ended: ReadonlySet<string>;
};
