// Engines that misbehave: real servers on a unix socket, so that the client meets real sockets and real bytes.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

type SeenRequest = {
  line: string;
  headers: IncomingMessage['headers'];
  body: string;
  connection: number;
};

export type FakeEngine = {
  socket: string;
  requests: SeenRequest[];
  /** `METHOD /path` of each request so far. */
  lines(): string[];
  stop(): Promise<void>;
};

type Handler = (line: string, response: ServerResponse, request: IncomingMessage) => void;

/** Answers HTTP with the version header that engines give; the handler does the rest. */
export async function startFakeEngine(apiVersion: string | undefined, handler: Handler): Promise<FakeEngine> {
  const requests: SeenRequest[] = [];
  const connections: Socket[] = [];
  const server = createHttpServer((request, response) => {
    const line = `${request.method} ${request.url}`;
    if (!connections.includes(request.socket)) connections.push(request.socket);
    void text(request).then((body) => {
      requests.push({
        line,
        headers: request.headers,
        body,
        connection: connections.indexOf(request.socket),
      });
      if (apiVersion !== undefined) response.setHeader('Api-Version', apiVersion);
      handler(line, response, request);
    });
  });
  // As engines do, it never ends a connection for being idle.
  server.keepAliveTimeout = 0;
  return await listen(server, requests);
}

/** Gives each connection to the handler once something has been asked on it. */
export async function startRawEngine(onRequest: (socket: Socket) => void): Promise<FakeEngine> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => onRequest(socket));
  });
  return await listen(server, []);
}

/** A JSON answer. */
export function answer(response: ServerResponse, status: number, body?: unknown): void {
  response.statusCode = status;
  if (body === undefined) {
    response.end();
    return;
  }
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(body));
}

async function listen(server: Server, requests: SeenRequest[]): Promise<FakeEngine> {
  const dir = mkdtempSync(join(tmpdir(), 'reeve-fake-'));
  const socket = join(dir, 'engine.sock');
  const open = new Set<Socket>();
  server.on('connection', (connection: Socket) => {
    open.add(connection);
    connection.once('close', () => open.delete(connection));
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  return {
    socket,
    requests,
    lines: () => requests.map((request) => request.line),
    stop: async () => {
      for (const connection of open) connection.destroy();
      await new Promise((resolve) => server.close(resolve));
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
