// What a command answers. `main` prints it, as text or as one JSON document, and sets the exit code.
import { ExitCode } from './exit-codes.ts';

export type OutcomeKind = 'done' | 'nothing-to-do' | 'pending' | 'partial' | 'failed' | 'deferred' | 'busy';

export type Outcome = {
  outcome: OutcomeKind;
  /** Default: by kind (see `exitCodeOf`). */
  exitCode?: ExitCode;
  /** Lines for people, without a trailing newline. */
  text: readonly string[];
  /** What `--json` prints besides version, command and outcome. */
  data?: Readonly<Record<string, unknown>>;
};

export function exitCodeOf(outcome: Outcome): ExitCode {
  if (outcome.exitCode !== undefined) return outcome.exitCode;
  switch (outcome.outcome) {
    case 'done':
    case 'nothing-to-do':
    case 'deferred':
      return ExitCode.done;
    case 'pending':
      return ExitCode.pending;
    case 'partial':
    case 'failed':
      return ExitCode.failed;
    case 'busy':
      return ExitCode.busy;
  }
}
