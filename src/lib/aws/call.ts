// One call to a cloud service: its client's settings, its deadline, and its failure in our words.
import { waitUntil } from '../abort.ts';
import { UnavailableError } from '../errors.ts';
import { answerLimit } from './answer-size.ts';
import { toCloudError } from './failures.ts';
import { originNotes } from './origins.ts';
import type { CloudPlace } from './settings.ts';

/** An attempt of several: the whole call ends by its own deadline. */
const connectMs = 3_000;
const attemptMs = 5_000;

export type CloudCall = {
  /** Completes "cannot ...". */
  action: string;
  /** Without a whole answer by then it ends. Where several calls share their time, nothing may be left of it. */
  deadlineMs: number;
  signal?: AbortSignal | undefined;
};

export type CallLimit = Pick<CloudCall, 'deadlineMs' | 'signal'>;

/** For services of small answers. The SDK itself tries again what may work then, after a while that grows. */
export function buildClientSettings({ region, endpoint }: CloudPlace) {
  return {
    region,
    ...(endpoint === undefined ? {} : { endpoint }),
    maxAttempts: 3,
    extensions: [...originNotes, answerLimit],
    requestHandler: { connectionTimeout: connectMs, requestTimeout: attemptMs, throwOnRequestTimeout: true },
  };
}

/**
 * Middleware below the retries, for calls that nobody may have to wait for: with how long the service asks for, the SDK would
 * start a timer that no signal ends, and the process would stay for it.
 */
export function dropRetryAfter<Next extends (args: never) => Promise<unknown>>(next: Next): Next {
  const handle = async (args: never): Promise<unknown> => {
    try {
      return await next(args);
    } catch (error) {
      const { $response } = error as { $response?: { headers: Record<string, string> } };
      delete $response?.headers['retry-after'];
      delete $response?.headers['x-amz-retry-after'];
      throw error;
    }
  };
  return handle as Next;
}

/**
 * Throws what `toCloudError` makes of a failure; UnavailableError also for a deadline and for an end from outside. Both end it
 * at once: the SDK looks at its signal only when it sends and between tries, not while it waits for credentials.
 */
export async function callCloud<Answer>(
  { action, deadlineMs, signal }: CloudCall,
  send: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  if (deadlineMs <= 0) throw new UnavailableError(`cannot ${action}: no time is left`, { code: 'DEADLINE' });
  const deadline = AbortSignal.timeout(Math.ceil(deadlineMs));
  const end = AbortSignal.any(signal === undefined ? [deadline] : [deadline, signal]);
  try {
    return await waitUntil(end, () => send(end));
  } catch (error) {
    if (signal?.aborted === true) {
      throw new UnavailableError(`cannot ${action}: interrupted`, { code: 'INTERRUPTED' });
    }
    if (deadline.aborted) {
      const cause = `no whole answer within ${Number((deadlineMs / 1000).toFixed(1))} s`;
      throw new UnavailableError(`cannot ${action}: ${cause}`, { code: 'DEADLINE' });
    }
    throw toCloudError(error, action);
  }
}

/** A page of somebody else's, as of a proxy in between, reads like an answer that says nothing. */
export function notAnswered(action: string): UnavailableError {
  return new UnavailableError(`cannot ${action}: the answer does not say that it is done`, {
    code: 'answer',
  });
}
