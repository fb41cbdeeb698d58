// Requests to the strict server by hand, as a node makes them.
import { gzipSync } from 'node:zlib';
import type { Ploy } from './server.ts';

export type Answer = { status: number; text: string };

export async function call(
  ploy: Ploy,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(`${ploy.url}${path}`, {
    method: body === undefined && path.endsWith('/status') ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${ploy.token}`, PLOY_NODE_UUID: ploy.nodeId, ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  return { status: response.status, text: await response.text() };
}

/** Throws where there is no work. */
export async function claim(ploy: Ploy): Promise<Record<string, unknown>> {
  const { status, text } = await call(ploy, `/v1/nodes/${ploy.nodeId}/claim`);
  if (status !== 200) throw new Error(`a claim was answered ${status}: ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}

export const frame = (line: string): string => `${JSON.stringify({ stream: 'stdout', line })}\n`;
export const packed = (text: string): string => gzipSync(text).toString('base64');
