// The exit codes of every reeve command. They follow sysexits(3) where it has a fitting one.

export const ExitCode = {
  /** Done, or nothing to do. */
  done: 0,
  /** Some or all of the work failed; the details are reported. */
  failed: 1,
  /** Changes are pending (`plan`, `--dry-run`). */
  pending: 2,
  /** The command line is wrong. */
  usage: 64,
  /** A document was refused. */
  refused: 65,
  /** A service that we need cannot be reached; trying later makes sense. */
  unavailable: 69,
  /** A bug of ours. */
  internal: 70,
  /** Another holder has the lock. Success for systemd. */
  busy: 75,
  /** The configuration is wrong. */
  config: 78,
} as const;

export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];
