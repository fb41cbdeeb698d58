// One request to a program of this machine, on a connection of its own, with one deadline over all of it. What the answer means
// is for whoever asks; whatever comes in place of an answer is an UnavailableError.
import { type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import { UnavailableError } from '../errors.ts';
import { version } from '../version.ts';
import { describeFailure } from './failures.ts';

export type Ask = {
  scheme: 'http' | 'https';
  host: string;
  port: number;
  method: string;
  /** Path and query, in characters that a request line may have. */
  target: string;
  timeoutMs: number;
  signal: AbortSignal;
};

/** As programs in Go: a redirection more, and the last one is the answer. */
const mostRedirections = 10;

/** Redirections are followed where they lead to the same port. The answer is closed once `take` is through with it. */
export async function ask<T>(about: Ask, take: (response: IncomingMessage) => Promise<T>): Promise<T> {
  const late = AbortSignal.timeout(about.timeoutMs);
  const signal = AbortSignal.any([about.signal, late]);
  let { target } = about;
  try {
    for (let followed = 0; ; followed += 1) {
      const response = await open({ ...about, target, signal });
      const next = followed < mostRedirections ? findNext({ ...about, target }, response) : undefined;
      if (next === undefined) return await take(response).finally(() => response.destroy());
      response.destroy();
      target = next;
    }
  } catch (error) {
    if (about.signal.aborted) throw about.signal.reason;
    throw toFailure(error, about, late);
  }
}

function open({ scheme, host, port, method, target, signal }: Ask): Promise<IncomingMessage> {
  const headers = { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': `reeve/${version}` };
  const how = { host, port, method, path: target, headers, signal, agent: false as const };
  return new Promise((resolve, reject) => {
    const outgoing = scheme === 'https' ? requestTls(how) : requestPlain(how);
    outgoing.once('response', resolve);
    // Stays for the whole life of the request: an error after the answer began belongs to whoever reads it.
    outgoing.on('error', reject);
    // With nobody for it, the request would end without a word.
    outgoing.once('upgrade', (_, socket) => {
      socket.destroy();
      reject(new Error('it wants to speak another protocol'));
    });
    outgoing.once('close', () => reject(Object.assign(new Error('closed'), { code: 'ECONNRESET' })));
    outgoing.end();
  });
}

/** Undefined where it is no redirection, or one that is not ours to follow. */
function findNext(
  { scheme, host, port, target, method }: Ask,
  response: IncomingMessage,
): string | undefined {
  const { statusCode = 0, headers } = response;
  const { location = '' } = headers;
  if (![301, 302, 303, 307, 308].includes(statusCode) || location === '') return undefined;
  if (method !== 'GET' && method !== 'HEAD') return undefined;
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const base = new URL(`${scheme}://${authority}`);
  // Only its path is resolved by what URLs allow: a target may be odder than they.
  const path = (target.split('?', 1)[0] ?? '').replaceAll(/\/{2,}/g, '/');
  const next = URL.canParse(location, base.origin + path) ? new URL(location, base.origin + path) : undefined;
  return next?.origin === base.origin ? `${next.pathname}${next.search}` : undefined;
}

function toFailure(error: unknown, { scheme, host, port, timeoutMs }: Ask, late: AbortSignal): Error {
  if (error instanceof UnavailableError) return error;
  const origin = `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const known = describeFailure(error, { trusted: "the system's authorities", now: new Date() });
  const { code, cause } = late.aborted
    ? { code: 'timeout', cause: `no answer within ${timeoutMs} ms` }
    : known;
  return new UnavailableError(`cannot reach ${origin}: ${cause}`, { cause: error, code });
}
