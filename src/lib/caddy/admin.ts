// Caddy's admin API: reads the whole configuration and replaces it. What stands in it is the edge's affair.
import { type IncomingMessage, type OutgoingHttpHeaders, request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import { StepError, systemErrorCode, UnavailableError } from '../errors.ts';
import { isRecord } from '../state/shape.ts';
import { formatDuration } from '../time.ts';

export type CaddyConfigText = {
  /** JSON as Caddy renders it: its keys are sorted, so that equal configurations give equal texts. */
  text: string;
  /** Guards a replacement against other writers; absent where something on the way has lost it. */
  etag?: string;
};

/** A read costs milliseconds. */
const fetchTimeoutMs = 5_000;
/** 2,000 new names with certificates of Caddy's own authority take 1.3 s on an idle machine. */
const sendTimeoutMs = 60_000;
/** 2,000 domains with 5,000 backends are 1 MB. */
const maxConfigBytes = 32 * 1024 * 1024;
/** Caddy's message is one sentence; more is a document. */
const maxMessageLength = 600;

/** Throws UnavailableError, with code `deadline` or `interrupted` for these two. */
export async function fetchConfig(
  admin: string,
  { signal }: { signal: AbortSignal },
): Promise<CaddyConfigText> {
  const call: Call = { action: 'read the configuration', method: 'GET', path: '/config/' };
  const limits = { signal, timeoutMs: fetchTimeoutMs };
  const answer = await exchange(admin, call, limits).catch(async (error: unknown) => {
    // A new configuration gives the admin API a new listener, and resets who was in the queue of the old one.
    if (systemErrorCode((error as Error).cause) !== 'ECONNRESET') throw error;
    return await exchange(admin, call, limits);
  });
  if (answer.status !== 200) throw new UnavailableError(describeRefusal(call, answer));
  const { text, etag } = answer;
  // A Caddy without a configuration has "null".
  if (!/^(\{|null\b)/.test(text)) {
    throw new UnavailableError(
      `cannot read the configuration of Caddy at "${new URL(admin).host}": what answers is not its admin API (cluster.caddy.admin)`,
      { code: 'not-caddy' },
    );
  }
  return { text, ...(etag === undefined ? {} : { etag }) };
}

/**
 * Replaces the whole configuration: by POST /config/ if it is still the one of the tag, else `changed`; without a tag
 * by POST /load, whatever is there. Throws StepError with code `caddy-refused` where Caddy will not have it, and
 * UnavailableError as `fetchConfig` does.
 */
export async function sendConfig(
  admin: string,
  text: string,
  { ifMatch, signal }: { ifMatch?: string | undefined; signal: AbortSignal },
): Promise<'done' | 'changed'> {
  const call: Call = {
    action: 'load the configuration',
    method: 'POST',
    path: ifMatch === undefined ? '/load' : '/config/',
    headers: {
      'content-type': 'application/json',
      ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
    },
    body: Buffer.from(text),
  };
  const answer = await exchange(admin, call, { signal, timeoutMs: sendTimeoutMs });
  if (answer.status === 412 && ifMatch !== undefined) return 'changed';
  if (answer.status >= 200 && answer.status < 300) return 'done';
  throw new StepError(describeRefusal(call, answer), { code: 'caddy-refused' });
}

type Call = {
  action: string;
  method: 'GET' | 'POST';
  path: string;
  headers?: OutgoingHttpHeaders;
  body?: Buffer;
};

type Answer = { status: number; text: string; etag: string | undefined };

type Limits = { signal: AbortSignal; timeoutMs: number };

async function exchange(admin: string, call: Call, { signal, timeoutMs }: Limits): Promise<Answer> {
  const url = new URL(admin);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}${call.path}`;
  const deadline = AbortSignal.timeout(timeoutMs);
  try {
    const response = await send(url, call, AbortSignal.any([signal, deadline]));
    const text = await readBody(response);
    const tag = response.trailers['etag'] ?? response.headers.etag;
    return { status: response.statusCode ?? 0, text, etag: tag === '' ? undefined : tag };
  } catch (error) {
    const about = `cannot ${call.action} of Caddy at "${url.host}"`;
    if (signal.aborted) {
      throw new UnavailableError(`${about}: interrupted`, { cause: error, code: 'interrupted' });
    }
    if (deadline.aborted) {
      const cause = `no answer within ${formatDuration(timeoutMs)}`;
      throw new UnavailableError(`${about}: ${cause}`, { cause: error, code: 'deadline' });
    }
    throw new UnavailableError(`${about}: ${describeCause(error)}`, { cause: error });
  }
}

/** Without an Origin: Caddy takes that for a program of this machine and checks the Host alone. */
function send(url: URL, call: Call, signal: AbortSignal): Promise<IncomingMessage> {
  const { method, headers = {}, body } = call;
  const request = url.protocol === 'https:' ? requestTls : requestPlain;
  return new Promise((resolve, reject) => {
    const outgoing = request(url, {
      method,
      headers: body === undefined ? headers : { ...headers, 'content-length': body.length },
      agent: false,
      signal,
    });
    outgoing.once('response', resolve);
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

/** The trailers are there once it has been read to the end. */
async function readBody(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    sizeBytes += chunk.length;
    if (sizeBytes > maxConfigBytes) throw new TooLargeError();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

class TooLargeError extends Error {}

function describeCause(error: unknown): string {
  if (error instanceof TooLargeError) return `its answer is larger than ${maxConfigBytes} bytes`;
  const code = systemErrorCode(error) ?? '';
  if (code.startsWith('HPE_')) return 'it answers something that is not HTTP';
  return socketCauses[code] ?? (error as Error).message;
}

const socketCauses: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there; start it (systemctl start caddy), or set cluster.caddy.admin',
  ECONNRESET: 'it closed the connection without an answer',
};

/** Short before Caddy's own words, which are cut in the status and have their reason last. */
function describeRefusal(call: Call, answer: Answer): string {
  const words = messageOf(answer.text).replaceAll(/\s+/g, ' ').trim().slice(0, maxMessageLength);
  const cause = words === '' ? `status ${answer.status}` : `status ${answer.status}: ${words}`;
  return `cannot ${call.action} of Caddy: ${cause}`;
}

function messageOf(text: string): string {
  try {
    const answer: unknown = JSON.parse(text);
    return isRecord(answer) && typeof answer['error'] === 'string' ? answer['error'] : '';
  } catch {
    return text;
  }
}
