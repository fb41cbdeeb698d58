// `/v1/metrics`: an instance's own metrics, as they are. Only this machine reaches its port.
import type { IncomingMessage } from 'node:http';
import { limits } from '../agenda/instances.ts';
import { parseMetricsQuery } from '../agenda/queries.ts';
import { UnavailableError } from '../errors.ts';
import { readAnswer } from '../http/answer.ts';
import { ask } from '../http/ask.ts';
import { type Answer, ApiError, type ApiRequest } from '../server/route.ts';
import type { Gate } from './gate.ts';

/** 502 where the instance has no metrics: another status than 200, too many, or no answer in time. */
export async function handleMetrics(request: ApiRequest, host: string, gate: Gate): Promise<Answer> {
  const { port, scheme, target } = parseMetricsQuery(request.query);
  const { signal } = request;
  const about = { scheme, host, port, target, method: 'GET', timeoutMs: limits.metricsMs, signal };
  return await gate(signal, () => ask(about, takeMetrics)).catch((error: unknown) => {
    throw error instanceof UnavailableError && !signal.aborted ? new ApiError(502, error.message) : error;
  });
}

async function takeMetrics(response: IncomingMessage): Promise<Answer> {
  const { statusCode: status, headers } = response;
  if (status !== 200) throw new UnavailableError(`the metrics are answered with ${status}`);
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity')
    throw new UnavailableError(`the metrics are in ${encoding}, which was not asked for`);
  const bytes = await readAnswer(response, limits.metricsBytes);
  return { status: 200, bytes, type: headers['content-type'] ?? 'text/plain; charset=utf-8' };
}
