// Bodies of answers: read whole up to a size, or handed on as they come.
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';

/** Throws an error with code TOO_LARGE beyond the size. */
export async function readAnswer(response: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const tooLarge = (): Error =>
    Object.assign(new Error(`its answer is larger than ${maxBytes} bytes`), { code: 'TOO_LARGE' });
  if (Number(response.headers['content-length'] ?? 0) > maxBytes) throw tooLarge();
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  return await new Promise((resolve, reject) => {
    response.on('data', (chunk: Buffer) => {
      sizeBytes += chunk.length;
      if (sizeBytes > maxBytes) reject(tooLarge());
      else chunks.push(chunk);
    });
    response.once('end', () => resolve(Buffer.concat(chunks)));
    response.once('error', reject);
  });
}

export type StreamHow = { idleMs: number; fail(error: unknown): Error; ended(): void };

/** Whoever reads may take its time: only the waits for the server count. */
export function streamAnswer(response: IncomingMessage, how: StreamHow): Readable {
  const stream = Readable.from(readChunks(response, how), { objectMode: false, highWaterMark: 64 * 1024 });
  // A generator that has not begun is ended without a word.
  stream.once('close', () => {
    response.destroy();
    how.ended();
  });
  return stream;
}

async function* readChunks(
  response: IncomingMessage,
  { idleMs, fail, ended }: StreamHow,
): AsyncGenerator<Buffer> {
  const late = (): void => {
    const message = `nothing came for ${idleMs} ms`;
    response.destroy(Object.assign(new Error(message), { code: 'ETIMEDOUT' }));
  };
  const chunks = response[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  try {
    for (;;) {
      const timer = setTimeout(late, idleMs);
      const next = await chunks.next().finally(() => clearTimeout(timer));
      if (next.done === true) return;
      yield next.value;
    }
  } catch (error) {
    throw fail(error);
  } finally {
    response.destroy();
    ended();
  }
}

/** The server's own words of an answer that is no success, for a message: JSON {error}, or plain text. Never the secret, whole or cut. */
export function readErrorText(body: Buffer, secret: string): string {
  const whole = body.subarray(0, 65_536).toString('utf8');
  const text = (secret === '' ? whole : whole.replaceAll(secret, '***')).slice(0, 4096).trim();
  const said = parseError(text) ?? text;
  return said.replaceAll(/\s+/g, ' ').slice(0, 300);
}

function parseError(text: string): string | undefined {
  try {
    const { error, message } = JSON.parse(text) as { error?: unknown; message?: unknown };
    return [error, message].find((value) => typeof value === 'string');
  } catch {
    return undefined;
  }
}
