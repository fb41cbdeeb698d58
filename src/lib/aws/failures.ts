// Errors of cloud services as ours: what is refused, what is missing, what may work the next time.
import { describeError, InputError, ReeveError, UnavailableError } from '../errors.ts';

/** What the SDK's errors carry, whichever service they are from. */
type ServiceError = Error & {
  $metadata?: { httpStatusCode?: number; attempts?: number; requestId?: string };
};

export function statusOf(error: unknown): number | undefined {
  return error instanceof Error ? (error as ServiceError).$metadata?.httpStatusCode : undefined;
}

/** `action` completes "cannot ...". Errors of ours are left as they are. */
export function toCloudError(error: unknown, action: string): ReeveError {
  if (error instanceof ReeveError) return error;
  const name = error instanceof Error ? error.name : 'Error';
  const status = statusOf(error);
  const text = describeError(error).replaceAll(/\s+/g, ' ').trim();
  const cause = status === undefined ? text : `${status} ${name}: ${text}`;
  const isRefused = status !== undefined && status >= 400 && status < 500 && !isThrottled(name, status);
  if (!isRefused) return new UnavailableError(`cannot ${action}: ${cause}`, { cause: error, code: name });
  if (status === 401 || status === 403) {
    return new UnavailableError(`cannot ${action}: ${cause}`, { cause: error, code: 'denied' });
  }
  return new InputError(`cannot ${action}: ${cause}`, { cause: error, code: name });
}

function isThrottled(name: string, status: number): boolean {
  return status === 429 || /Throttl|SlowDown|TooManyRequests|RequestLimitExceeded/.test(name);
}
