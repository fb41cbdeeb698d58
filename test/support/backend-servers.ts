// Backends as a balancer meets them: HTTP and WebSocket servers that answer with their name, fail on demand, and can be
// ended and started again at their address.
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Backend } from '../../src/lib/edge/route.ts';
import { onTestFinished } from './after-test.ts';
import { freePort } from './ports.ts';

export type BackendServer = {
  readonly backend: Backend;
  /** What it was asked, `GET /path host`, in their order. */
  readonly requests: string[];
  /** Header lists of the same, as they came. */
  readonly headers: string[][];
  /** Of its answers. `cut`: the connection ends without one. */
  status: number | 'cut';
  /** Of some paths. */
  statusOf: Record<string, number>;
  /** Tunnels whose client has closed its half stay open. */
  ignoresEnds: boolean;
  tunnels(): number;
  /** Ends every connection and refuses new ones. */
  stop(): Promise<void>;
  /** Listens at the same address again. */
  start(): Promise<void>;
};

export type BackendServerOptions = { host?: string; port?: number };

export async function startBackendServer(
  name: string,
  { host = '127.0.0.1', port = 0 }: BackendServerOptions = {},
): Promise<BackendServer> {
  const tunnels = new Set<Duplex>();
  const server = createServer((request, response) => {
    note(request);
    request.resume();
    request.on('end', () => {
      if (made.status === 'cut') request.socket.destroy();
      else response.writeHead(made.statusOf[request.url ?? ''] ?? made.status).end(`${name}\n`);
    });
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
    note(request);
    tunnels.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => tunnels.delete(socket));
    socket.on('end', () => {
      if (!made.ignoresEnds) socket.end();
    });
    socket.write(acceptUpgrade(request));
    socket.on('data', (data) => socket.write(`${name}: ${data}`));
  });
  const note = (request: IncomingMessage): void => {
    made.requests.push(`${request.method} ${request.url} ${request.headers.host}`);
    made.headers.push(request.rawHeaders);
  };
  const listen = (at: number): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(at, host, () => resolve());
    });
  const stop = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
      for (const socket of tunnels) socket.destroy();
    });
  // Not one that the kernel gives to clients as well: it is listened at again after a pause.
  await listen(port === 0 ? await freePort() : port);
  const backend = { host, port: (server.address() as AddressInfo).port };
  const made: BackendServer = {
    backend,
    requests: [],
    headers: [],
    status: 200,
    statusOf: {},
    ignoresEnds: false,
    tunnels: () => tunnels.size,
    stop,
    start: () => listen(backend.port),
  };
  onTestFinished(stop);
  return made;
}

/** HAProxy compares the answer to the key. */
function acceptUpgrade({ headers }: IncomingMessage): string {
  const key = `${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const accept = createHash('sha1').update(key).digest('base64');
  return [
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${accept}`,
    '\r\n',
  ].join('\r\n');
}
