// The error classes of reeve. Each carries its exit code; callers decide by class or `code`, never by text.
// Messages read "cannot <verb> <object>: <cause>", lower case, without a full stop.
import { ExitCode } from './exit-codes.ts';

type ErrorDetails = { cause?: unknown; code?: string };

/** Base of all errors that are an answer rather than a bug. Not thrown itself. */
export class ReeveError extends Error {
  readonly exitCode: ExitCode;
  readonly code: string;

  constructor(message: string, exitCode: ExitCode, details: ErrorDetails & { code: string }) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.exitCode = exitCode;
    this.code = details.code;
  }
}

/** The command line is wrong. */
export class UsageError extends ReeveError {
  constructor(message: string, details: ErrorDetails = {}) {
    super(message, ExitCode.usage, { code: 'usage', ...details });
  }
}

/** The configuration, or the machine it describes, is wrong in a way that trying again does not cure. */
export class ConfigError extends ReeveError {
  constructor(message: string, details: ErrorDetails = {}) {
    super(message, ExitCode.config, { code: 'config', ...details });
  }
}

/** A document or value from elsewhere that we refuse. */
export class InputError extends ReeveError {
  constructor(message: string, details: ErrorDetails = {}) {
    super(message, ExitCode.refused, { code: 'input', ...details });
  }
}

/** Network, engine, store or control plane: not reachable now, or answering that it cannot serve. */
export class UnavailableError extends ReeveError {
  constructor(message: string, details: ErrorDetails = {}) {
    super(message, ExitCode.unavailable, { code: 'unavailable', ...details });
  }
}

/** Somebody else holds the lock. Not a failure. */
export class BusyError extends ReeveError {
  readonly lock: string;
  readonly holder: string;

  constructor(lock: string, holder: string) {
    super(`lock ${lock} is held by ${holder}`, ExitCode.busy, { code: 'busy' });
    this.lock = lock;
    this.holder = holder;
  }
}

/** A program that we ran has failed, or a step of ours could not be done. */
export class CommandError extends ReeveError {
  readonly argv: readonly string[];
  readonly status: number | undefined;
  readonly lastLines: string;

  constructor(
    message: string,
    about: { argv: readonly string[]; status?: number; lastLines?: string },
    details: ErrorDetails = {},
  ) {
    super(message, ExitCode.failed, { code: 'command', ...details });
    this.argv = about.argv;
    this.status = about.status;
    this.lastLines = about.lastLines ?? '';
  }
}

/** A step of a concern that failed for a reason told in its message; its siblings go on. */
export class StepError extends ReeveError {
  constructor(message: string, details: ErrorDetails = {}) {
    super(message, ExitCode.failed, { code: 'step', ...details });
  }
}

/** Something that cannot happen has happened: a bug of ours. */
export class InternalError extends ReeveError {
  constructor(message: string, details: ErrorDetails = {}) {
    super(`internal error: ${message}`, ExitCode.internal, { code: 'internal', ...details });
  }
}

/** The one sentence that tells a person what went wrong. */
export function describeError(error: unknown): string {
  if (error instanceof Error) return error.message;
  return String(error);
}

/** Node's error code (`ENOENT`, `ECONNREFUSED`, ...), if the value carries one. */
export function systemErrorCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = (error as NodeJS.ErrnoException).code;
  return typeof code === 'string' ? code : undefined;
}
