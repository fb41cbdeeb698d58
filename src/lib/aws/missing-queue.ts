// How SQS says that there is no such queue: in the words of its present protocol, or of the one before.
import { ReeveError } from '../errors.ts';

/** Of what `callCloud` throws. */
export function isMissingQueue(error: unknown): boolean {
  return error instanceof ReeveError && /QueueDoesNotExist|NonExistentQueue/.test(error.code);
}
