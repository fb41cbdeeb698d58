// Asks a starting replica whether it serves. One request, no redirects, a deadline; the answer in words.
import { get } from 'node:http';
import { describeError } from '../errors.ts';

export type ProbeAnswer = { passed: boolean; said: string };

/** A health answer is short; what is more is not read. */
const maxBodyBytes = 512;

/** 2xx within the deadline passes. Never throws. */
export function probe(url: string, timeoutMs: number, signal: AbortSignal): Promise<ProbeAnswer> {
  return new Promise((resolve) => {
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const request = get(url, { signal: deadline, agent: false }, (response) => {
      const status = response.statusCode ?? 0;
      const passed = status >= 200 && status < 300;
      let body = '';
      response.setEncoding('utf8');
      const finish = (): void => resolve({ passed, said: passed ? `got ${status}` : describe(status, body) });
      response.on('data', (chunk: string) => {
        body += chunk;
        if (body.length > maxBodyBytes) response.destroy();
      });
      response.on('close', finish);
    });
    request.on('error', (error) => {
      const late = deadline.aborted && !signal.aborted;
      resolve({ passed: false, said: late ? `no answer in ${timeoutMs}ms` : describeError(error) });
    });
  });
}

function describe(status: number, body: string): string {
  const text = body.trim().replaceAll(/\s+/g, ' ').slice(0, 160);
  return text === '' ? `got ${status}` : `got ${status}: ${text}`;
}
