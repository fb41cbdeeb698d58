// The one runner of commands that others ask for: a program or a shell in a process group of its own, with a deadline, a
// way to end it, and bounded memory for what it prints. Knows no concern.
import type { Argv } from '../exec/run.ts';

export type CommandSpec = {
  argv: Argv | { shell: string };
  dir: string;
  /** All of it: nothing is inherited. */
  env: Readonly<Record<string, string>>;
  /** Undefined: whoever we are. */
  user?: { uid: number; gid: number };
};

export type RunOptions = {
  deadlineMs: number;
  /** Between SIGTERM and SIGKILL for the whole group; 0: SIGKILL at once. */
  killGraceMs: number;
  /** Ends the command as the deadline does. */
  signal: AbortSignal;
  /** Of stdout and stderr together the last bytes are kept. */
  maxOutputBytes: number;
  /** Sees everything, as it comes. Must not block: it is not waited for. */
  sink?(chunk: Uint8Array): void;
};

export type CommandEnd = (
  | { kind: 'exited'; code: number }
  | { kind: 'signalled'; signal: NodeJS.Signals }
  | { kind: 'deadline' }
  | { kind: 'cancelled' }
  | { kind: 'not-started'; message: string }
) & { output: CommandOutput };

/** `isCut`: the beginning is gone. */
export type CommandOutput = { bytes: Uint8Array; isCut: boolean };
