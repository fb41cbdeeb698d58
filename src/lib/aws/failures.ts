// Errors of cloud services as ours: what is refused, what is missing, what may work the next time.
import { describeError, InputError, ReeveError, systemErrorCode, UnavailableError } from '../errors.ts';
import { isPassingStatus } from '../http/retry.ts';
import { LongAnswer } from './answer-size.ts';
import { describeConnection } from './connection-failures.ts';
import { type Asked, askedFor } from './origins.ts';

/** What the SDK's errors carry, whichever service they are from. */
type ServiceError = Error & {
  $metadata?: { httpStatusCode?: number; attempts?: number; requestId?: string };
  $response?: { statusCode?: number; headers?: Readonly<Record<string, string>> };
};

export function statusOf(error: unknown): number | undefined {
  return error instanceof Error ? (error as ServiceError).$metadata?.httpStatusCode : undefined;
}

/**
 * `action` completes "cannot ...". Errors of ours are left as they are. InputError: what we have sent is refused, for good.
 * UnavailableError: it may work later; its code is `denied` for a right that is lacking, `clock` for a clock that is wrong,
 * `credentials` where there are none, `answer` for what is no answer of such a service, and else the system's or the service's.
 */
export function toCloudError(error: unknown, action: string): ReeveError {
  if (error instanceof ReeveError) return error;
  if (error instanceof LongAnswer) {
    return new UnavailableError(`cannot ${action}: ${error.message}`, { code: 'answer' });
  }
  const asked = askedFor(error);
  const foreign = describeForeign(error, asked);
  // What could not be parsed may be quoted, and be a secret: such an error is not kept as the cause.
  if (foreign !== undefined) {
    return new UnavailableError(`cannot ${action}: ${foreign}`, { code: 'answer' });
  }
  const status = statusOf(error);
  if (status === undefined || systemErrorCode(error) !== undefined) {
    return toConnectionError(error, action, asked);
  }
  const name = error instanceof Error ? toOneLine(error.name) : 'Error';
  const text = textOf(error);
  const cause = text === unknownText ? `${status} without a reason` : `${status} ${name}: ${text}`;
  if (isSkewed(name, text)) {
    const message = `cannot ${action}: ${cause}; the clock of this machine seems to be wrong`;
    return new UnavailableError(message, { cause: error, code: 'clock' });
  }
  if (isDenied(name, status)) {
    return new UnavailableError(`cannot ${action}: ${cause}`, { cause: error, code: 'denied' });
  }
  const isRefused = status >= 400 && status < 500 && !isPassing(name, status);
  if (!isRefused) return new UnavailableError(`cannot ${action}: ${cause}`, { cause: error, code: name });
  return new InputError(`cannot ${action}: ${cause}`, { cause: error, code: name });
}

function textOf(error: unknown): string {
  return toOneLine(describeError(error));
}

/** Of a reason: what is longer explains nothing. */
const maxReasonLength = 1000;

function toOneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim().slice(0, maxReasonLength);
}

/** There is no answer, or the SDK has not come to asking. */
function toConnectionError(error: unknown, action: string, asked: Asked | undefined): UnavailableError {
  const text = textOf(error);
  const name = error instanceof Error ? error.name : 'Error';
  if (/ProviderError$/.test(name)) {
    return new UnavailableError(`cannot ${action}: ${text}: ${whereCredentialsAre}`, {
      cause: error,
      code: 'credentials',
    });
  }
  const code = systemErrorCode(error);
  const cause = describeConnection(error, asked?.origin) ?? withCode(text, code);
  return new UnavailableError(`cannot ${action}: ${cause}`, { cause: error, code: code ?? name });
}

const whereCredentialsAre = [
  'they come from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)',
  "from ~/.aws (AWS_PROFILE must name a profile that is there), or from the machine's role",
].join(', ');

/** What the SDK says of an error that has no name. */
const unknownText = 'UnknownError';
const namelessTexts = [unknownText, 'Unknown'];

/** A page of somebody in between, or of a service that is another one. An answer to HEAD never says why. */
function describeForeign(error: unknown, asked: Asked | undefined): string | undefined {
  // One that broke off is a matter of the connection.
  if (!(error instanceof Error) || systemErrorCode(error) !== undefined) return undefined;
  const isUnparsed = error instanceof SyntaxError;
  const { statusCode: status = 200, headers } = (error as ServiceError).$response ?? {};
  const isPage = /^text\/html\b/i.test(headers?.['content-type'] ?? '');
  if (isUnparsed && !isPage && status < 300) return 'an answer that is not whole JSON';
  if (!isPage && !isUnparsed && (asked?.method === 'HEAD' || !isNameless(error))) return undefined;
  const advice = status >= 500 ? '' : ': is the endpoint right?';
  return `${asked?.origin ?? 'the service'} answers ${status}, and not as the service that is asked for${advice}`;
}

/** Made of an answer, but no error of a service, or of one that had nothing to go by. */
function isNameless(error: Error): boolean {
  if (!('$response' in error)) return false;
  return !('$fault' in error) || error.name === 'Unknown' || namelessTexts.includes(error.message);
}

/** Throttled, or our request has been too slow in coming: S3 says that with status 400. */
function isPassing(name: string, status: number): boolean {
  return (
    isPassingStatus(status) ||
    /Throttl|SlowDown|TooManyRequests|RequestLimitExceeded|RequestTimeout/.test(name)
  );
}

/** Services that speak JSON say it with status 400 and a name. */
function isDenied(name: string, status: number): boolean {
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
function withCode(text: string, code: string | undefined): string {
  if (code === undefined || text.includes(code)) return text;
  return text === '' ? code : `${code}: ${text}`;
}
