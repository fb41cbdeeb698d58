// Bodies as ploy's server takes them: not too large, one JSON value, known fields of the right types, nothing else.
import type { IncomingMessage } from 'node:http';
import * as z from 'zod';

/** An answer that is no success, in the server's words. */
export class PloyRefusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export const maxBodyBytes = 1 << 20;
export const maxIngestBodyBytes = 16 << 20;
const maxIngestBytes = 10 << 20;

/** Reads no more than is allowed; what comes after is refused. */
export async function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const tooLarge = new PloyRefusal(413, 'payload exceeds body size cap');
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge;
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > limit) throw tooLarge;
    parts.push(part);
  }
  return Buffer.concat(parts);
}

export function parseBody<T>(shape: z.ZodType<T>, body: Buffer): T {
  let raw: unknown;
  try {
    raw = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch (error) {
    throw new PloyRefusal(400, `invalid request: ${(error as Error).message}`);
  }
  const parsed = shape.safeParse(raw);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new PloyRefusal(400, `invalid request: ${issue?.path.join('.')} ${issue?.message}`);
}

export const text = z.string();
export const int32 = z
  .int()
  .min(-(2 ** 31))
  .max(2 ** 31 - 1);
export const count = z.int().min(0);
export const instant = z.iso.datetime({ offset: true });

/** PostgreSQL keeps no character 0, which is then the server's own trouble. */
export function requireStorable(value: unknown, what: string): void {
  requireWithout(/\\u0000/, value, `failed to ${what}: ERROR: invalid byte sequence: 0x00 (SQLSTATE 22021)`);
}

/** What is stored as it came: there half of a pair is refused as well. */
export function requireStorableJson(value: unknown, what: string): void {
  const answer = `failed to ${what}: ERROR: unsupported Unicode escape sequence (SQLSTATE 22P05)`;
  requireWithout(/\\u(0000|d[89a-f])/, value, answer);
}

function requireWithout(escapes: RegExp, value: unknown, answer: string): void {
  const text = (JSON.stringify(value) ?? '').replaceAll('\\\\', '');
  if (escapes.test(text)) throw new PloyRefusal(500, answer);
}

/** Base64 as Go takes it: the standard alphabet, padded. */
export const base64 = z.string().transform((value, ctx) => {
  const bytes = Buffer.from(value, 'base64');
  if (bytes.toString('base64') !== value) ctx.addIssue('is no base64');
  return bytes;
});

/** An upload's content: there, and below the cap. */
export function requireContent(bytes: Buffer, name: string): Buffer {
  if (bytes.length === 0) throw new PloyRefusal(400, `${name} is required and must not be empty`);
  if (bytes.length > maxIngestBytes)
    throw new PloyRefusal(413, `${name} exceeds 10 MiB: ${bytes.length} bytes`);
  return bytes;
}
