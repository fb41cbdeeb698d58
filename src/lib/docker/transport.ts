// The exchange of one request and its answer over the engine's socket: kept connections, the version of the API, a deadline.
// Raw errors come out; connection.ts puts them into words.
import http, { type IncomingMessage, type RequestOptions, request } from 'node:http';
import { ConfigError } from '../errors.ts';
import type { Log } from '../report/log.ts';
import { type Limit, startDeadline } from './deadline.ts';
import { UnexpectedAnswer } from './errors.ts';
import { isStaleConnection } from './failures.ts';
import { commonApiVersion, compareApiVersions, isApiVersion, oldestApiVersion } from './versions.ts';

export type Call = {
  /** What the call does, as messages say it: `start container "web"`. */
  action: string;
  method: 'GET' | 'POST' | 'DELETE';
  /** Below the version, each part encoded. */
  path: string;
  query?: Readonly<Record<string, string | number>>;
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  deadline: Limit;
  /** Statuses besides 2xx and 304 that the caller deals with; others throw. */
  accept?: readonly number[];
  /** Asked below no version, which every engine answers. */
  unversioned?: boolean;
  /** Ends with the client's signal. Only for calls that change nothing on the way: pulls and waits. */
  interruptible?: boolean;
  /** Ends with this one instead. */
  signal?: AbortSignal;
  /** Texts that must not appear in a message, whatever the engine says. */
  secrets?: readonly string[];
};

/** Reads an answer within the call's deadline; `touch` tells an idle one that something came. */
type Take<T> = (response: IncomingMessage, touch: () => void) => Promise<T>;

export type Transport = {
  readonly apiVersion: string | undefined;
  readonly requestCount: number;
  exchange<T>(call: Call, take: Take<T>): Promise<T>;
  close(): void;
};

export type TransportOptions = { socket: string; log?: Log; signal?: AbortSignal };

export function openTransport(options: TransportOptions): Transport {
  const agent = new http.Agent({ keepAlive: true });
  let apiVersion: string | undefined;
  let requestCount = 0;

  const exchangeOnce = async <T>(call: Call, take: Take<T>): Promise<T> => {
    const outer = call.signal ?? (call.interruptible === true ? options.signal : undefined);
    const deadline = startDeadline(call.deadline, outer);
    const began = performance.now();
    try {
      requestCount += 1;
      const request = buildRequest(call, options.socket, agent, apiVersion);
      const response = await send(request, call.body, deadline.signal);
      const ms = Math.round(performance.now() - began);
      options.log?.debug('engine request', {
        method: call.method,
        path: call.path,
        status: response.statusCode,
        ms,
      });
      apiVersion = requireVersion(response, call, options.socket);
      return await take(response, deadline.touch);
    } catch (error) {
      throw deadline.reason() ?? error;
    } finally {
      deadline.end();
    }
  };

  return {
    get apiVersion() {
      return apiVersion;
    },
    get requestCount() {
      return requestCount;
    },
    exchange: async (call, take) => {
      try {
        return await exchangeOnce(call, take);
      } catch (error) {
        // A kept connection may have been closed under us; asking again is harmless only where nothing changes.
        if (call.method !== 'GET' || !isStaleConnection(error)) throw error;
        return await exchangeOnce(call, take);
      }
    },
    close: () => agent.destroy(),
  };
}

/** Left to find a name for TLS by itself, Node.js compiles a large expression first, also where there is no TLS. */
const nameless = { servername: '' };

function buildRequest(
  call: Call,
  socketPath: string,
  agent: http.Agent,
  version: string | undefined,
): RequestOptions {
  const query = Object.entries(call.query ?? {}).map(
    ([name, value]) => `${name}=${encodeURIComponent(value)}`,
  );
  const versioned = version !== undefined && call.unversioned !== true;
  const path = versioned ? `/v${version}${call.path}` : call.path;
  return {
    socketPath,
    agent,
    ...nameless,
    method: call.method,
    path: query.length === 0 ? path : `${path}?${query.join('&')}`,
    headers: { host: 'engine', ...call.headers },
  };
}

function send(options: RequestOptions, body: unknown, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ ...options, signal });
    outgoing.once('response', resolve);
    // Stays for the whole life of the request: an error after the answer began belongs to whoever reads it.
    const fail = (error: Error): void =>
      reject(Object.assign(error, { reusedSocket: outgoing.reusedSocket }));
    outgoing.on('error', fail);
    // An answer that is no answer, as 101, closes it without a word.
    outgoing.once('close', () => fail(Object.assign(new Error('closed'), { code: 'ECONNRESET' })));
    if (body === undefined) {
      outgoing.end();
      return;
    }
    const bytes = Buffer.from(JSON.stringify(body));
    outgoing.setHeader('content-type', 'application/json');
    outgoing.setHeader('content-length', bytes.length);
    outgoing.end(bytes);
  });
}

/** The version to use from now on. Engines give theirs with every answer, errors included: what does not is no engine. */
function requireVersion(response: IncomingMessage, call: Call, socket: string): string {
  const theirs = response.headers['api-version'];
  if (typeof theirs !== 'string' || !isApiVersion(theirs)) {
    response.destroy();
    throw new UnexpectedAnswer(`status ${response.statusCode} without an API version`);
  }
  if (compareApiVersions(theirs, oldestApiVersion) < 0) {
    response.destroy();
    throw new ConfigError(
      `cannot ${call.action}: the engine at "${socket}" speaks API ${theirs}, but ${oldestApiVersion} (Docker 20.10) or newer is needed`,
    );
  }
  return commonApiVersion(theirs);
}
