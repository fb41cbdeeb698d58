// One POST of a JSON document to somebody else's service, with a deadline over the whole exchange.
import { request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import { UnavailableError } from '../errors.ts';

/** Throws UnavailableError unless the answer is a 2xx. The address may be a secret: messages name the host only. */
export async function postJson(
  url: URL,
  document: unknown,
  { timeoutMs }: { timeoutMs: number },
): Promise<void> {
  const body = Buffer.from(JSON.stringify(document));
  const signal = AbortSignal.timeout(timeoutMs);
  const status = await send(url, body, signal).catch((error: unknown) => {
    const cause = signal.aborted ? `no answer within ${timeoutMs} ms` : String((error as Error).message);
    throw new UnavailableError(`cannot send to ${url.host}: ${cause}`, { cause: error });
  });
  if (status >= 200 && status < 300) return;
  throw new UnavailableError(`cannot send to ${url.host}: it answered ${status}`);
}

function send(url: URL, body: Buffer, signal: AbortSignal): Promise<number> {
  const headers = { 'content-type': 'application/json', 'content-length': body.length };
  const options = { method: 'POST', headers, signal, agent: false as const };
  return new Promise((resolve, reject) => {
    const outgoing =
      url.protocol === 'https:'
        ? requestTls(url, { ...options, minVersion: 'TLSv1.3' })
        : requestPlain(url, options);
    outgoing.on('error', reject);
    // With nobody for it, the request would end without a word.
    outgoing.once('upgrade', (_, socket) => {
      socket.destroy();
      reject(new Error('it wants to speak another protocol'));
    });
    outgoing.once('response', (response) => {
      response.on('error', reject);
      response.once('end', () => resolve(response.statusCode ?? 0));
      response.resume();
    });
    outgoing.end(body);
  });
}
