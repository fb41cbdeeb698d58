// Errors of cloud services as ours: what is refused, what is missing, what may work the next time.
import { describeError, InputError, ReeveError, systemErrorCode, UnavailableError } from '../errors.ts';

/** What the SDK's errors carry, whichever service they are from. */
type ServiceError = Error & {
  $metadata?: { httpStatusCode?: number; attempts?: number; requestId?: string };
};

export function statusOf(error: unknown): number | undefined {
  return error instanceof Error ? (error as ServiceError).$metadata?.httpStatusCode : undefined;
}

/**
 * `action` completes "cannot ...". Errors of ours are left as they are. InputError: what we have sent is refused, for good.
 * UnavailableError: it may work later; its code is `denied` for a right that is lacking and `clock` for a clock that is wrong.
 */
export function toCloudError(error: unknown, action: string): ReeveError {
  if (error instanceof ReeveError) return error;
  const name = error instanceof Error ? error.name : 'Error';
  const status = statusOf(error);
  const text = describeError(error).replaceAll(/\s+/g, ' ').trim();
  const cause = status === undefined ? describeNetworkError(error, text) : `${status} ${name}: ${text}`;
  if (isSkewed(name, text)) {
    const message = `cannot ${action}: ${cause}; the clock of this machine seems to be wrong`;
    return new UnavailableError(message, { cause: error, code: 'clock' });
  }
  if (isDenied(name, status)) {
    return new UnavailableError(`cannot ${action}: ${cause}`, { cause: error, code: 'denied' });
  }
  const isRefused = status !== undefined && status >= 400 && status < 500 && !isPassing(name, status);
  if (!isRefused) return new UnavailableError(`cannot ${action}: ${cause}`, { cause: error, code: name });
  return new InputError(`cannot ${action}: ${cause}`, { cause: error, code: name });
}

/** Throttled, or our request has been too slow in coming: S3 says that with status 400. */
function isPassing(name: string, status: number): boolean {
  if (status === 408 || status === 429) return true;
  return /Throttl|SlowDown|TooManyRequests|RequestLimitExceeded|RequestTimeout/.test(name);
}

/** Services that speak JSON say it with status 400 and a name. */
function isDenied(name: string, status: number | undefined): boolean {
  if (status === 401 || status === 403) return true;
  return /^(AccessDenied|UnrecognizedClient|InvalidClientTokenId|ExpiredToken|InvalidSignature|MissingAuthentication)/.test(
    name,
  );
}

function isSkewed(name: string, text: string): boolean {
  if (/^(RequestTimeTooSkewed|RequestExpired|RequestInTheFuture)$/.test(name)) return true;
  return /^(InvalidSignature|SignatureDoesNotMatch)/.test(name) && /expired|not yet current/.test(text);
}

/** One of several addresses that were tried has no message, but a code. */
function describeNetworkError(error: unknown, text: string): string {
  const code = systemErrorCode(error);
  if (code === undefined || text.includes(code)) return text;
  return text === '' ? code : `${code}: ${text}`;
}
