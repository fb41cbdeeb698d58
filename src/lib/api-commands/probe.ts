// `/v1/probe`: what an instance answers on one of its paths, and how soon. Whether that is healthy is not ours to say.
import type { IncomingMessage } from 'node:http';
import type { ProbeAnswer } from '../agenda/instances.ts';
import { parseProbeQuery } from '../agenda/queries.ts';
import { UnavailableError } from '../errors.ts';
import { ask } from '../http/ask.ts';
import type { Answer, ApiRequest } from '../server/route.ts';

/** So much of a body is taken, so that an instance that has said all does not see its connection break. */
const politeBytes = 4_096;
const politeMs = 200;

/** 200 whatever the instance says, or that it says nothing. */
export async function handleProbe(request: ApiRequest, host: string): Promise<Answer> {
  const probe = parseProbeQuery(request.query);
  const { signal } = request;
  const startedMs = performance.now();
  const latencyMs = (): number => Math.round(performance.now() - startedMs);
  const take = async (response: IncomingMessage): Promise<ProbeAnswer> => {
    const answer = { http_status: response.statusCode ?? 0, latency_ms: latencyMs() };
    await takeLittle(response);
    return answer;
  };
  const answer = await ask({ ...probe, host, signal }, take).catch((error: unknown): ProbeAnswer => {
    if (!(error instanceof UnavailableError) || signal.aborted) throw error;
    return { http_status: 0, latency_ms: latencyMs(), error: error.message };
  });
  return { status: 200, json: answer };
}

async function takeLittle(response: IncomingMessage): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, politeMs);
    let left = politeBytes;
    response.on('data', (chunk: Buffer) => {
      left -= chunk.length;
      if (left <= 0) resolve();
    });
    response.on('error', () => resolve());
    response.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
    response.once('end', resolve);
  });
}
