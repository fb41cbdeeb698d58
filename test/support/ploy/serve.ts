// One request: its certificate and tokens are checked, it meets its fault, its route answers, and all of it is kept.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { maxBodyBytes, PloyRefusal, readBody } from './body.ts';
import { type PloyAnswer, type PloyCall, shorten } from './call.ts';
import { isCommitted, type PloyFaultKind, type PloyFaults } from './faults.ts';
import type { PloyConnection, PloyRequest, PloyState } from './model.ts';
import type { Pki } from './pki.ts';
import { type FoundRoute, findRoute } from './routes.ts';
import { noteChunk } from './routes-uploads.ts';

export type World = {
  state: PloyState;
  faults: PloyFaults;
  pki: Pki | undefined;
  /** Over TLS every route but the exchange of a token needs a certificate. */
  isTls: boolean;
  /** By the port of the other end. */
  connections: Map<number, PloyConnection>;
  whenAnswered: () => void;
};

export async function serveRequest(
  world: World,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const path = new URL(request.url ?? '/', 'http://ploy').pathname;
  const found = findRoute(request.method ?? '', path);
  const route = typeof found === 'object' ? found.row.route : undefined;
  const socket = request.socket as TLSSocket;
  if (world.isTls && route !== 'bootstrap' && !socket.authorized) {
    world.state.violations.push(`${request.method} ${path} without a certificate of the cluster`);
    socket.destroy();
    return;
  }
  const record = recordRequest(world, request, path, found);
  try {
    const body = await readBody(request, typeof found === 'object' ? found.row.maxBytes : maxBodyBytes);
    (record as { bodyBytes: number }).bodyBytes = body.length;
    await answerWithFault(world, { request, response, record, body, found });
  } catch (error) {
    if (!(error instanceof PloyRefusal)) throw error;
    // What is left of the body would be taken for the next request.
    if (error.status === 413) response.setHeader('connection', 'close');
    send(response, record, refuse(error));
  } finally {
    world.whenAnswered();
  }
}

function recordRequest(
  world: World,
  request: IncomingMessage,
  path: string,
  found: FoundRoute | 'method' | undefined,
): PloyRequest {
  const { state, isTls } = world;
  const name = isTls ? (request.socket as TLSSocket).getPeerCertificate().subject?.CN : undefined;
  const connection = findConnection(world, request.socket);
  const record: PloyRequest = {
    atMs: Date.now(),
    ...{ connection, turn: connection.requests },
    method: request.method ?? '',
    path,
    route: typeof found === 'object' ? found.row.route : undefined,
    headers: request.headers,
    body: undefined,
    bodyBytes: 0,
    certificateName: Array.isArray(name) ? name[0] : name,
    ...{ status: undefined, fault: undefined, committed: false, given: undefined },
  };
  state.requests.push(record);
  return record;
}

/** As it was accepted, by its other end: over TLS the request has another socket. */
function findConnection({ connections }: World, socket: Socket): PloyConnection {
  const connection = connections.get(socket.remotePort ?? 0) ?? newConnection(connections, socket);
  if (connection.requests === 0) {
    socket.once('close', () => {
      connection.closedAtMs = Date.now();
    });
  }
  connection.requests += 1;
  return connection;
}

let connectionIds = 0;

export function newConnection(connections: World['connections'], socket: Socket): PloyConnection {
  connectionIds += 1;
  const connection = { id: connectionIds, openedAtMs: Date.now(), closedAtMs: undefined, requests: 0 };
  connections.set(socket.remotePort ?? 0, connection);
  return connection;
}

type Exchange = {
  request: IncomingMessage;
  response: ServerResponse;
  record: PloyRequest;
  body: Buffer;
  found: FoundRoute | 'method' | undefined;
};

async function answerWithFault(world: World, exchange: Exchange): Promise<void> {
  const { response, record, found } = exchange;
  const fault = record.route === undefined ? undefined : world.faults.next(record.route, record.path);
  record.fault = fault?.kind;
  // An answer that takes its time is not there before it is given.
  if (fault?.kind === 'slow') await new Promise((resolve) => setTimeout(resolve, fault.ms));
  const isReached =
    fault === undefined || fault.kind === 'slow' || fault.kind === 'cut' || isCommitted(fault);
  const answer = isReached ? answerOrRefuse(world, exchange) : undefined;
  if (!isReached) noteRequest(world, exchange);
  record.committed = answer !== undefined && answer.status < 300 && found !== undefined;
  if (fault === undefined || fault.kind === 'slow') send(response, record, answer as PloyAnswer);
  else sendFault(response, record, fault, answer);
}

/** What its route does not see: its sender cannot know that. */
function noteRequest({ state }: World, { record, body }: Exchange): void {
  if (body.length > 0) record.body = shorten(JSON.parse(body.toString('utf8')));
  if (record.route === 'logs') noteChunk(state, body);
}

function answerOrRefuse(world: World, exchange: Exchange): PloyAnswer {
  try {
    return answerTrue(world, exchange);
  } catch (error) {
    if (error instanceof PloyRefusal) return refuse(error);
    throw error;
  }
}

function answerTrue({ state, pki }: World, { request, record, body, found }: Exchange): PloyAnswer {
  if (found === undefined) throw new PloyRefusal(404, '404 page not found');
  if (found === 'method') throw new PloyRefusal(405, 'Method Not Allowed');
  const bearer = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1];
  const nodeId = String(request.headers['ploy_node_uuid'] ?? '');
  const { row, ids } = found;
  if (row.route !== 'bootstrap') checkIdentity(state, row.pattern.source, { bearer, nodeId, ids });
  const call: PloyCall = { state, pki, record, body, ids, nodeId, bearer };
  return row.answer(call);
}

function checkIdentity(
  state: PloyState,
  pattern: string,
  { bearer, nodeId, ids }: { bearer: string | undefined; nodeId: string; ids: readonly string[] },
): void {
  if (bearer === undefined || !state.tokens.has(bearer)) {
    throw new PloyRefusal(401, 'unauthorized: missing or invalid bearer token');
  }
  if (nodeId === '') throw new PloyRefusal(400, 'PLOY_NODE_UUID header is required');
  if (!/^[0-9A-Za-z_-]{1,64}$/.test(nodeId)) throw new PloyRefusal(400, 'invalid PLOY_NODE_UUID header');
  if (!pattern.includes('nodes')) return;
  if (!/^[0-9A-Za-z_-]{1,64}$/.test(ids[0] ?? '')) throw new PloyRefusal(400, 'id: invalid node id');
  if (ids[0] !== nodeId) throw new PloyRefusal(403, 'forbidden: another node');
}

/** As Go's own errors: plain text with a line feed. */
function refuse(error: PloyRefusal): PloyAnswer {
  const headers = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' };
  return { status: error.status, bytes: Buffer.from(`${error.message}\n`), headers };
}

function send(response: ServerResponse, record: PloyRequest, answer: PloyAnswer): void {
  record.status = answer.status;
  const { headers, bytes } = renderAnswer(answer);
  response.writeHead(answer.status, headers).end(bytes);
}

function renderAnswer({ status, json, bytes, headers = {} }: PloyAnswer) {
  if (status === 204) return { headers: {}, bytes: Buffer.alloc(0) };
  const content = bytes ?? Buffer.from(`${JSON.stringify(json)}\n`);
  const type = bytes === undefined ? { 'content-type': 'application/json' } : {};
  return { headers: { ...type, ...headers, 'content-length': String(content.length) }, bytes: content };
}

function sendFault(
  response: ServerResponse,
  record: PloyRequest,
  fault: Exclude<PloyFaultKind, { kind: 'slow' }>,
  answer: PloyAnswer | undefined,
): void {
  switch (fault.kind) {
    case 'answer':
      send(response, record, refuse(new PloyRefusal(fault.status, fault.text ?? `fault ${fault.status}`)));
      return;
    case 'silence':
      return;
    case 'reset':
      resetConnection(response);
      return;
    case 'cut': {
      const { headers, bytes } = renderAnswer(answer as PloyAnswer);
      // A head without a body would be a whole answer.
      if (bytes.length === 0) {
        resetConnection(response);
        return;
      }
      response.writeHead(answer?.status ?? 200, headers);
      response.write(bytes.subarray(0, bytes.length / 2), () => resetConnection(response));
      return;
    }
  }
}

/** A TLS socket has no reset of its own. */
function resetConnection({ socket }: ServerResponse): void {
  socket?.destroy();
}
