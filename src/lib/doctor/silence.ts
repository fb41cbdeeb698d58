// Why something does not answer, for a finding that has the place and the fix beside it.
import { describeError, systemErrorCode } from '../errors.ts';

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
