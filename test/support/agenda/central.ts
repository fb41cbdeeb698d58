// A strict stand-in for agenda's control plane as nodes see it: machines and their heartbeats. It refuses what is not exactly as it
// should be, fails as it is told to, and keeps what it was asked. A machine is online while it was seen within three intervals.
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from '../after-test.ts';

export type CentralRequest = {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
  status: number;
};

export type CentralFault =
  | { kind: 'answer'; status: number; text: string; headers?: Readonly<Record<string, string>> }
  /** The connection is reset before an answer. */
  | { kind: 'reset' }
  /** No answer ever. */
  | { kind: 'silence' };

export type Central = {
  readonly url: string;
  readonly requests: readonly CentralRequest[];
  /** What was not as it should be, one sentence each. */
  readonly violations: readonly string[];
  /** What happens to the next requests instead of an answer. */
  readonly faults: CentralFault[];
  /** When a machine was seen last, and its version. */
  seen(machineId: number): { at: number; version: string } | undefined;
  isOnline(machineId: number, intervalMs: number): boolean;
  stop(): Promise<void>;
};

export type CentralOptions = {
  /** Agent tokens by machine. */
  machines?: Readonly<Record<number, string>>;
  /** PEM: over TLS. */
  tls?: { cert: string; key: string };
  /** What stands before all paths. */
  base?: string;
};

type State = Required<Pick<CentralOptions, 'machines' | 'base'>> & {
  violations: string[];
  seen: Map<number, { at: number; version: string }>;
};

export async function startCentral(options: CentralOptions = {}): Promise<Central> {
  const { machines = { 7: 'tok-3f9c' }, tls, base = '' } = options;
  const state: State = { machines, base, violations: [], seen: new Map() };
  const requests: CentralRequest[] = [];
  const faults: CentralFault[] = [];
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await readText(request);
    const { method = '', url = '', headers } = request;
    const fault = faults.shift();
    const { status, text } = fault?.kind === 'answer' ? fault : judge(state, { method, url, headers, body });
    requests.push({ method, url, headers, body, status: fault === undefined ? status : 0 });
    if (fault?.kind === 'silence') return;
    if (fault?.kind === 'reset') return void request.socket.resetAndDestroy();
    const extra = fault?.kind === 'answer' ? fault.headers : {};
    response.writeHead(status, { 'content-type': 'application/json', ...extra }).end(text);
  };
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    take(request, response).catch((error: unknown) => response.destroy(error as Error));
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  onTestFinished(stop);
  return {
    ...{ requests, faults, stop, violations: state.violations },
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}${base}`,
    seen: (machineId) => state.seen.get(machineId),
    isOnline: (machineId, intervalMs) =>
      Date.now() - (state.seen.get(machineId)?.at ?? Number.NEGATIVE_INFINITY) <= 3 * intervalMs,
  };
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

type Asked = Pick<CentralRequest, 'method' | 'url' | 'headers' | 'body'>;
type Judged = { status: number; text: string };

function judge(state: State, asked: Asked): Judged {
  const refuse = (status: number, error: string): Judged => {
    state.violations.push(`${status}: ${error}`);
    return { status, text: JSON.stringify({ code: status, message: error }) };
  };
  const path = asked.url.startsWith(state.base) ? asked.url.slice(state.base.length) : '';
  const [, id] = /^\/api\/v1\/machines\/([^/?]+)\/heartbeat$/.exec(path) ?? [];
  if (id === undefined || asked.method !== 'POST') return refuse(404, `${asked.method} ${asked.url}`);
  if (!/^[1-9]\d{0,18}$/.test(id)) return refuse(400, 'invalid machine id');
  const token = state.machines[Number(id)];
  if (token === undefined) return refuse(404, 'machine not found');
  if (asked.headers['x-agenda-node-token'] !== token) return refuse(401, 'invalid node token');
  const version = readVersion(asked);
  if (version === undefined) return refuse(400, `body ${asked.body} of ${asked.headers['content-type']}`);
  state.seen.set(Number(id), { at: Date.now(), version });
  return { status: 200, text: JSON.stringify({ code: 0, message: 'ok', data: { ok: true } }) };
}

/** Undefined for a body that is anything but `{"version": "..."}`. */
function readVersion({ headers, body }: Asked): string | undefined {
  if (headers['content-type'] !== 'application/json') return undefined;
  if (headers['content-length'] !== String(Buffer.byteLength(body))) return undefined;
  try {
    const { version, ...others } = JSON.parse(body) as { version?: unknown };
    const isRight = typeof version === 'string' && version !== '' && Object.keys(others).length === 0;
    return isRight ? version : undefined;
  } catch {
    return undefined;
  }
}
