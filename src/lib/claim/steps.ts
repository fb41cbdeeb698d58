// What the pass at the start of `claim` does, each with its reason.
import type { JobContainer } from './facts.ts';

export type ClaimStep = { reason: string } & (
  | /** The container of the original ended a moment ago: its end is told to the server. */ {
      kind: 'complete';
      container: JobContainer;
    }
  | /** It runs, and nobody of ours knows it. */ { kind: 'adopt'; container: JobContainer }
  | /** The job's claim is lost; its container has the ids. */ {
      kind: 'restore';
      key: string;
      container: JobContainer;
    }
  | /** The job's claim is lost, and nothing else is known of it. */ { kind: 'give-up'; key: string }
  | /** A completion goes out before anything is claimed. */ { kind: 'deliver'; key: string }
  | { kind: 'start'; key: string }
  | /** The job has ended and its end has been told: its container is left over. */ {
      kind: 'remove';
      container: JobContainer;
    }
  | /** It is told and left alone. */ { kind: 'trouble'; about: string; container?: JobContainer }
);

/** It tells the server something, which may take as long as that takes to answer; the others are done on this node. */
export function waitsForServer({ kind }: ClaimStep): boolean {
  return kind === 'complete' || kind === 'deliver' || kind === 'give-up' || kind === 'trouble';
}
