// Requests to a control plane: kept connections, TLS as tls.ts says, a deadline for every step, and answers whose size is
// bounded. What a status means is for whoever asks; all other troubles come out as UnavailableError with a code of their own.
import http, { type ClientRequest, type IncomingMessage, request as requestPlain } from 'node:http';
import https, { request as requestTls } from 'node:https';
import type { Readable } from 'node:stream';
import type { SecureContext } from 'node:tls';
import { UnavailableError } from '../errors.ts';
import { readAnswer, streamAnswer } from './answer.ts';
import { describeFailure, isStaleConnection } from './failures.ts';

export type HttpOptions = {
  /** Scheme, host and port, and a path that all others are below. */
  baseUrl: string;
  /** Sent with every request. */
  headers?: Readonly<Record<string, string>>;
  /** Only for https. */
  secureContext?: SecureContext;
  /** What messages call the authority that is trusted. */
  trusted?: string;
  /** Interrupts all requests that have no signal of their own. */
  signal?: AbortSignal;
};

export type HttpRequest = {
  method: 'GET' | 'POST';
  /** Below the base, its parts encoded. */
  path: string;
  /** Sent as JSON. */
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  /** From the first byte to the last of the answer; of a stream, to its head. */
  timeoutMs?: number;
  /** Null: nothing interrupts it but its deadline. */
  signal?: AbortSignal | null;
  maxAnswerBytes?: number;
};

export type HttpHead = { status: number; headers: IncomingMessage['headers'] };
export type HttpAnswer = HttpHead & { body: Buffer };
export type HttpStream = HttpHead & { stream: Readable };

export type HttpClient = {
  /** The whole answer, whatever its status. Throws UnavailableError with a FailureCode. */
  send(request: HttpRequest): Promise<HttpAnswer>;
  /** Where the status is 200, the body as it comes; it fails where nothing comes for `idleMs`. Otherwise the whole answer. */
  stream(request: HttpRequest & { idleMs?: number }): Promise<HttpAnswer | HttpStream>;
  /** Ends all connections, and with them what is under way. */
  close(): void;
};

const handshakeMs = 10_000;
const defaultTimeoutMs = 30_000;
const defaultAnswerBytes = 1024 * 1024;

/** Loads what a request over TLS needs, which takes ten milliseconds: for whoever waits for something else anyway. */
export function loadHttp(): void {
  void https.globalAgent;
}

export function openHttp(options: HttpOptions): HttpClient {
  const wire = openWire(options);
  const exchange = async <T>(request: HttpRequest, take: Take<T>): Promise<T> => {
    const { timeoutMs = defaultTimeoutMs } = request;
    const end = startEnd(request.signal === undefined ? options.signal : request.signal, timeoutMs);
    let begun: Exchange | undefined;
    try {
      end.signal.throwIfAborted();
      begun = begin(wire, request, end.signal);
      try {
        return await take(await begun.head, end);
      } catch (error) {
        // A kept connection may have been closed under us; asking again is harmless only where nothing changes.
        const isStale = begun.outgoing.reusedSocket && isStaleConnection(error);
        if (request.method !== 'GET' || !isStale || end.signal.aborted || wire.isClosed) throw error;
        begun = begin(wire, request, end.signal);
        return await take(await begun.head, end);
      }
    } catch (error) {
      end.stop();
      begun?.outgoing.destroy();
      throw toFailure(end.reason() ?? error, wire);
    }
  };
  const takeWhole =
    (maxBytes: number): Take<HttpAnswer> =>
    async (response, end) => {
      const body = await readAnswer(response, maxBytes);
      end.stop();
      return { ...toHead(response), body };
    };
  return {
    send: (request) => exchange(request, takeWhole(request.maxAnswerBytes ?? defaultAnswerBytes)),
    stream: (request) =>
      exchange<HttpAnswer | HttpStream>(request, async (response, end) => {
        if (response.statusCode !== 200) return await takeWhole(defaultAnswerBytes)(response, end);
        end.headHasCome();
        const idleMs = request.idleMs ?? defaultTimeoutMs;
        const fail = (error: unknown): Error => toFailure(end.reason() ?? error, wire);
        return { ...toHead(response), stream: streamAnswer(response, { idleMs, fail, ended: end.stop }) };
      }),
    close: () => {
      wire.isClosed = true;
      wire.agent.destroy();
    },
  };
}

type Wire = {
  base: URL;
  isTls: boolean;
  agent: http.Agent | https.Agent;
  options: HttpOptions;
  /** What ends with its connection then is not asked again. */
  isClosed: boolean;
};

function openWire(options: HttpOptions): Wire {
  const base = new URL(options.baseUrl);
  const isTls = base.protocol === 'https:';
  const { secureContext } = options;
  const secure = {
    minVersion: 'TLSv1.3' as const,
    ...(secureContext === undefined ? {} : { secureContext }),
  };
  const agent = isTls ? new https.Agent({ keepAlive: true, ...secure }) : new http.Agent({ keepAlive: true });
  return { base, isTls, agent, options, isClosed: false };
}

function begin({ base, isTls, agent, options }: Wire, request: HttpRequest, signal: AbortSignal): Exchange {
  const { path, body, method } = request;
  const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
  const headers: Record<string, string | number> = { ...options.headers, ...request.headers };
  if (bytes !== undefined) headers['content-type'] = 'application/json';
  if (method === 'POST') headers['content-length'] = bytes?.length ?? 0;
  const url = new URL(`${base.href.replace(/\/+$/, '')}${path}`);
  const how = { method, headers, agent, signal };
  const outgoing = isTls ? requestTls(url, how) : requestPlain(url, how);
  boundHandshake(outgoing, isTls);
  const head = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.once('response', resolve);
    // Stays for the whole life of the request: an error after the answer began belongs to whoever reads it.
    outgoing.on('error', reject);
    // An answer that is no answer, as 101, closes it without a word.
    outgoing.once('close', () => reject(closedEarly()));
  });
  outgoing.end(bytes);
  return { outgoing, head };
}

function closedEarly(): Error {
  return Object.assign(new Error('closed'), { code: 'ECONNRESET' });
}

type Exchange = { outgoing: ClientRequest; head: Promise<IncomingMessage> };
type Take<T> = (response: IncomingMessage, end: End) => Promise<T>;

function toHead({ statusCode = 0, headers }: IncomingMessage): HttpHead {
  return { status: statusCode, headers };
}

/** Connecting and agreeing on keys have a deadline of their own: a server that takes no part in it is not slow, but gone. */
function boundHandshake(outgoing: ClientRequest, isTls: boolean): void {
  outgoing.once('socket', (socket) => {
    if (outgoing.reusedSocket) return;
    const late = (): void => {
      outgoing.destroy(
        Object.assign(new Error(`no connection within ${handshakeMs} ms`), { code: 'ETIMEDOUT' }),
      );
    };
    const timer = setTimeout(late, handshakeMs);
    const clear = (): void => clearTimeout(timer);
    socket.once(isTls ? 'secureConnect' : 'connect', clear);
    socket.once('close', clear);
  });
}

type End = {
  signal: AbortSignal;
  /** Why it has ended, where that is our doing. */
  reason(): Error | undefined;
  /** From now on only the caller's signal ends it. */
  headHasCome(): void;
  stop(): void;
};

function startEnd(outer: AbortSignal | null | undefined, timeoutMs: number): End {
  const controller = new AbortController();
  let reason: Error | undefined;
  const abort = (error: Error): void => {
    reason ??= error;
    controller.abort(error);
  };
  const interrupt = (): void => abort(Object.assign(new Error('interrupted'), { code: 'ABORT_ERR' }));
  const late = Object.assign(new Error(`no answer within ${timeoutMs} ms`), { code: 'ETIMEDOUT' });
  const timer = setTimeout(() => abort(late), timeoutMs);
  if (outer?.aborted === true) interrupt();
  outer?.addEventListener('abort', interrupt, { once: true });
  return {
    signal: controller.signal,
    reason: () => reason,
    headHasCome: () => clearTimeout(timer),
    stop: () => {
      clearTimeout(timer);
      outer?.removeEventListener('abort', interrupt);
    },
  };
}

function toFailure(error: unknown, { base, options }: Wire): UnavailableError {
  if (error instanceof UnavailableError) return error;
  const trusted = options.trusted ?? "the system's authorities";
  const { code, cause } = describeFailure(error, { trusted, now: new Date() });
  return new UnavailableError(`cannot reach ${base.origin}: ${cause}`, { cause: error, code });
}
