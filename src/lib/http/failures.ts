// What went wrong with a request that has no answer: the network, the time, TLS, or our own end. Pure.
import { systemErrorCode } from '../errors.ts';
import { explainTlsError, type TlsAbout } from './tls.ts';

export type FailureCode = 'network' | 'timeout' | 'tls' | 'interrupted' | 'too-large';

/** The server had closed the connection before our request came: it has not been seen. */
export function isStaleConnection(error: unknown): boolean {
  const code = systemErrorCode(error);
  return code === 'ECONNRESET' || code === 'EPIPE';
}

export function describeFailure(error: unknown, about: TlsAbout): { code: FailureCode; cause: string } {
  const code = systemErrorCode(error);
  const text = error instanceof Error ? error.message : String(error);
  if (code === 'ABORT_ERR') return { code: 'interrupted', cause: 'interrupted' };
  if (code === 'TOO_LARGE') return { code: 'too-large', cause: text };
  if (code === 'ETIMEDOUT')
    return { code: 'timeout', cause: text.replace(/^connect ETIMEDOUT.*/, 'no connection') };
  const tls = explainTlsError(error, about);
  if (tls !== undefined) return { code: 'tls', cause: tls };
  return { code: 'network', cause: words[code ?? ''] ?? text };
}

const words: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'the connection was closed before the answer',
  EPIPE: 'the connection was closed before the answer',
  ENOTFOUND: 'its name is not known',
  EAI_AGAIN: 'its name cannot be looked up now',
  EHOSTUNREACH: 'no way to it',
  ENETUNREACH: 'no way to its network',
};
