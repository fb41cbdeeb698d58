// One call to a cloud service: its client's settings, its deadline, and its failure in our words.
import { UnavailableError } from '../errors.ts';
import { toCloudError } from './failures.ts';
import type { CloudPlace } from './settings.ts';

/** An attempt of several: the whole call ends by its own deadline. */
const connectMs = 3_000;
const attemptMs = 5_000;

export type CloudCall = {
  /** Completes "cannot ...". */
  action: string;
  deadlineMs: number;
  signal?: AbortSignal | undefined;
};

/** For services of small answers. The SDK itself tries again what may work then, after a while that grows. */
export function buildClientSettings({ region, endpoint }: CloudPlace) {
  return {
    region,
    ...(endpoint === undefined ? {} : { endpoint }),
    maxAttempts: 3,
    requestHandler: { connectionTimeout: connectMs, requestTimeout: attemptMs, throwOnRequestTimeout: true },
  };
}

/** Throws what `toCloudError` makes of a failure; UnavailableError also for a deadline and for an end from outside. */
export async function callCloud<Answer>(
  { action, deadlineMs, signal }: CloudCall,
  send: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const deadline = AbortSignal.timeout(deadlineMs);
  try {
    return await send(signal === undefined ? deadline : AbortSignal.any([deadline, signal]));
  } catch (error) {
    if (signal?.aborted === true) {
      throw new UnavailableError(`cannot ${action}: interrupted`, { code: 'INTERRUPTED' });
    }
    if (deadline.aborted) {
      const cause = `no whole answer within ${deadlineMs / 1000} s`;
      throw new UnavailableError(`cannot ${action}: ${cause}`, { code: 'DEADLINE' });
    }
    // The parser quotes what it could not parse, which may be a secret: its error is not kept as the cause.
    if (error instanceof SyntaxError) {
      throw new UnavailableError(`cannot ${action}: an answer that is not whole JSON`, { code: 'answer' });
    }
    throw toCloudError(error, action);
  }
}
