// Asks a starting replica whether it serves. One request, no redirects, a deadline; the answer in words.
import { get, type IncomingMessage } from 'node:http';
import { describeError } from '../errors.ts';
import { cleanLine } from './log-tail.ts';

export type ProbeAnswer = { passed: boolean; said: string };

/** A health answer is short; what is more is not read. */
const maxBodyBytes = 512;

/** A whole answer of 2xx within the deadline passes. Never throws. */
export function probe(url: string, timeoutMs: number, signal: AbortSignal): Promise<ProbeAnswer> {
  return new Promise((resolve) => {
    const fail = (said: string): void => resolve({ passed: false, said });
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const request = get(url, { signal: deadline, agent: false });
    request.on('response', (response) => {
      readAnswer(response, resolve);
    });
    // Neither an answer nor an error to Node, which leaves the connection to us.
    request.on('upgrade', (response, socket) => {
      socket.destroy();
      fail(describe(response.statusCode ?? 0, ''));
    });
    request.on('error', (error) => {
      const late = deadline.aborted && !signal.aborted;
      fail(late ? `no answer in ${timeoutMs}ms` : describeError(error));
    });
  });
}

function readAnswer(response: IncomingMessage, resolve: (answer: ProbeAnswer) => void): void {
  const status = response.statusCode ?? 0;
  let body = '';
  response.setEncoding('utf8');
  response.on('data', (chunk: string) => {
    body += chunk;
    if (body.length > maxBodyBytes) response.destroy();
  });
  response.on('close', () => {
    if (status < 200 || status >= 300) return resolve({ passed: false, said: describe(status, body) });
    const whole = response.complete || body.length > maxBodyBytes;
    resolve({ passed: whole, said: whole ? `got ${status}` : `got ${status}, and the answer was cut off` });
  });
}

function describe(status: number, body: string): string {
  const text = cleanLine(body).slice(0, 160);
  return text === '' ? `got ${status}` : `got ${status}: ${text}`;
}
