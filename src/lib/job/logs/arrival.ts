// Whether a request that has failed may have come to the server all the same. Pure.
import { systemErrorCode } from '../../errors.ts';

/** No connection was made: nothing can have been sent. */
const unmade = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'];

export function mayHaveArrived(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (unmade.includes(systemErrorCode(cause) ?? '')) return false;
  }
  return true;
}
