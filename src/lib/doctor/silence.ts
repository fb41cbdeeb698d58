// Why something does not answer, for a finding that has the place and the fix beside it.
import { describeError, ReeveError, systemErrorCode } from '../errors.ts';

/** It runs, and does not answer: only a restart helps. */
export function isHung(error: unknown): boolean {
  return error instanceof ReeveError && error.code === 'deadline';
}

/** The whole sentence where it is more than that nobody is there. */
export function describeSilence(error: unknown): string {
  const cause = error instanceof Error ? systemErrorCode(error.cause) : undefined;
  return silences[cause ?? ''] ?? describeError(error);
}

const silences: Readonly<Record<string, string>> = {
  ENOENT: 'it is not there',
  ECONNREFUSED: 'nothing listens there',
  EACCES: 'this user may not use it',
};
