// What went wrong between us and the engine, in words that say what to do about it.
import { systemErrorCode, UnavailableError } from '../errors.ts';
import { formatDuration } from '../time.ts';
import { DeadlineError, InterruptedError, type Limit } from './deadline.ts';
import { UnexpectedAnswer } from './errors.ts';

type FailedCall = { action: string; deadline: Limit };

/** An engine's message is one sentence; more is a stack or a document. */
const maxMessageLength = 600;
/** Shorter values stand in ordinary words: taking them out would spoil a message and hide nothing. */
const minSecretLength = 4;

/** Whatever else stopped a call, as one UnavailableError. `code` is `deadline` or `interrupted` for these two. */
export function toUnavailable(error: unknown, call: FailedCall, socket: string): UnavailableError {
  const about = `cannot ${call.action}: the engine at "${socket}"`;
  if (error instanceof InterruptedError) {
    return new UnavailableError(`cannot ${call.action}: interrupted`, { cause: error, code: 'interrupted' });
  }
  if (error instanceof DeadlineError) {
    const waited = formatDuration(call.deadline.ms);
    const silence =
      call.deadline.kind === 'total' ? `did not answer within ${waited}` : `was silent for ${waited}`;
    return new UnavailableError(`${about} ${silence}`, { cause: error, code: 'deadline' });
  }
  return new UnavailableError(`${about} ${describeCause(error)}`, { cause: error });
}

/** The request went into a kept connection that the engine was closing: it never saw it. */
export function isStaleConnection(error: unknown): boolean {
  const code = systemErrorCode(error);
  const reused = (error as { reusedSocket?: boolean } | undefined)?.reusedSocket === true;
  return reused && (code === 'ECONNRESET' || code === 'EPIPE');
}

/** The engine's message as one line without secrets. */
export function describeStatus(status: number, message: string, secrets: readonly string[]): string {
  return cleanMessage(message, secrets) || `the engine answers status ${status}`;
}

export function cleanMessage(message: string, secrets: readonly string[]): string {
  let clean = message;
  const longestFirst = secrets.filter((secret) => secret.length >= minSecretLength);
  longestFirst.sort((left, right) => right.length - left.length);
  for (const secret of longestFirst) clean = clean.replaceAll(secret, '***');
  clean = clean.replaceAll(/\s+/g, ' ').trim();
  return clean.length > maxMessageLength ? `${clean.slice(0, maxMessageLength)}...` : clean;
}

function describeCause(error: unknown): string {
  if (error instanceof UnexpectedAnswer) return `answers as no container engine does (${error.message})`;
  const code = systemErrorCode(error) ?? '';
  if (code.startsWith('HPE_')) return 'answers something that is not HTTP';
  return socketCauses[code] ?? `fails (${code || 'unknown error'})`;
}

const socketCauses: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist; install and start it (systemctl start docker), or set cluster.docker.socket',
  ENOTDIR: 'does not exist; set cluster.docker.socket',
  ECONNREFUSED: 'is not running; start it (systemctl start docker)',
  EACCES: 'may not be used by this user; run as root',
  EPERM: 'may not be used by this user; run as root',
  ECONNRESET: 'closed the connection in the middle of its answer; look at its log (journalctl -u docker)',
  EPIPE: 'closed the connection; look at its log (journalctl -u docker)',
  ENAMETOOLONG: 'cannot be a socket: the path is too long',
  EINVAL: 'cannot be a socket: the path is not valid',
};
