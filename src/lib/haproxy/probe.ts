// Whether a frontend of HAProxy's answers where requests are passed on to it. Anything may listen on a port; only ours says
// that there is no route for a request that names none.
import { request } from 'node:http';
import { systemErrorCode, UnavailableError } from '../errors.ts';
import { formatDuration } from '../time.ts';

/** A start by socket activation included. */
const timeoutMs = 5_000;

/** `word` stands in the answer to a request for nothing. Throws UnavailableError where it does not. */
export async function requireFrontend(
  address: string,
  { signal, word, remedy }: { signal: AbortSignal; word: string; remedy: string },
): Promise<void> {
  const url = new URL(`http://${address}/`);
  const cause = await new Promise<string | undefined>((resolve) => {
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const outgoing = request(url, { agent: false, signal: deadline }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        body += chunk.slice(0, 1000);
      });
      response.on('end', () => resolve(body.includes(word) ? undefined : 'something else answers there'));
      response.on('error', (error) => resolve(describeCause(error)));
    });
    outgoing.on('error', (error) => resolve(describeCause(error)));
    outgoing.end();
  });
  if (cause === undefined) return;
  const about = `cannot pass requests on to HAProxy at "${address}"`;
  if (signal.aborted) throw new UnavailableError(`${about}: interrupted`, { code: 'interrupted' });
  throw new UnavailableError(`${about}: ${cause}: ${remedy}`);
}

function describeCause(error: Error): string {
  if (systemErrorCode(error) === 'ECONNREFUSED') return 'nothing listens there';
  return error.name === 'AbortError' ? `no answer within ${formatDuration(timeoutMs)}` : error.message;
}
