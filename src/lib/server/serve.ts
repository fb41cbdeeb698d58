// A server that ends when nobody is connected: its socket is systemd's, where callers wait for the next one. So what counts is
// sockets, not requests, and it stops taking connections before it ends, and never ends itself: the event loop runs empty.
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket, Server as TlsServer } from 'node:tls';
import type { BaseContext } from '../context.ts';
import { createBodyRoom } from './body.ts';
import { type CertificateFiles, createRefresh, readCertificates, tlsVersions } from './certificates.ts';
import { Connections } from './connections.ts';
import { type Authorize, exchange, type RenderError } from './exchange.ts';
import { type ListenTarget, listenOn } from './listen.ts';
import { ApiError, type Route } from './route.ts';

export type ServerTimes = {
  /** For a whole request, for its answer, and for the next one on a kept connection. */
  readMs: number;
  writeMs: number;
  keepMs: number;
  /** Without a connection; undefined: until it is stopped. */
  idleMs: number | undefined;
};

export type ServeOptions = {
  target: ListenTarget;
  /** TLS 1.3, and where there is an authority, callers show a certificate of it. Undefined: neither. */
  certificates: CertificateFiles | undefined;
  times: ServerTimes;
  bodyBytes: number;
  routes: readonly Route[];
  /** For every route that is not open. */
  authorize?: Authorize | undefined;
  renderError?: RenderError | undefined;
  /** Throws where nobody may be served on it. */
  checkAddress?: ((address: AddressInfo) => void) | undefined;
};

export type Served = { connections: number; requests: number };

/** More at once than any honest caller opens; each costs some tens of kilobytes. */
const mostConnections = 512;
/** Parsed, they are several times as large; the unit has a gigabyte. */
const bodiesBytes = 64 * 1024 * 1024;
const handshakeMs = 10_000;
const headersMs = 10_000;
/** How late a limit above may be noticed. */
const checkMs = 1_000;
/** For requests under way when we are stopped. */
const stopMs = 5_000;

/** Resolves when it has ended: idle, or stopped by the context's signal. Throws ConfigError where it cannot begin. */
export async function serve(
  ctx: Pick<BaseContext, 'log' | 'signal'>,
  options: ServeOptions,
): Promise<Served> {
  const { times } = options;
  const server = build(ctx, options);
  let idle: NodeJS.Timeout | undefined;
  const onIdle = (): void => {
    // The last connection may be told after the server's own end: a timer would keep the process.
    if (times.idleMs !== undefined && server.listening) idle = setTimeout(() => server.close(), times.idleMs);
  };
  const connections = new Connections({
    most: mostConnections,
    onIdle,
    onBusy: () => clearTimeout(idle),
  });
  const served = attach(ctx, { server, connections, options });
  const closed = new Promise<void>((resolve) => server.once('close', resolve));
  const address = await listenOn(server, options.target);
  const refused = refuseAddress(server, options);
  // No caller has been read yet: connections are taken after this turn of the loop.
  if (refused !== undefined) served.routes = options.routes.map((route) => ({ ...route, handle: refusal }));
  onIdle();
  if (refused !== undefined) ctx.log.error(refused.message);
  else ctx.log.info(`listening on ${address}${options.certificates === undefined ? ', without TLS' : ''}`);
  const stop = (): void => {
    clearTimeout(idle);
    // Kept connections end now, those under way with their answer.
    server.close();
    const last = setTimeout(() => connections.closeAll(), stopMs);
    server.once('close', () => clearTimeout(last));
  };
  if (ctx.signal.aborted) stop();
  else ctx.signal.addEventListener('abort', stop, { once: true });
  await closed;
  ctx.signal.removeEventListener('abort', stop);
  clearTimeout(idle);
  if (refused !== undefined) throw refused;
  return { connections: connections.total, requests: served.requests };
}

/** Where nobody may be served. On a socket that systemd holds, callers are told so: else they would start us again at once. */
function refuseAddress(server: Server, { checkAddress, target }: ServeOptions): Error | undefined {
  const address = server.address();
  if (checkAddress === undefined || address === null || typeof address === 'string') return undefined;
  try {
    checkAddress(address);
    return undefined;
  } catch (error) {
    if (target.handed) return error as Error;
    server.close();
    server.closeAllConnections();
    throw error;
  }
}

const refusal = () => Promise.reject(new ApiError(503, 'this node cannot serve now: its journal tells why'));

function build(ctx: Pick<BaseContext, 'log'>, { certificates, times }: ServeOptions): Server {
  const common = {
    headersTimeout: Math.min(headersMs, times.readMs),
    requestTimeout: times.readMs,
    keepAliveTimeout: times.keepMs,
    connectionsCheckingInterval: checkMs,
  };
  if (certificates === undefined) return createServer(common);
  const server = createTlsServer({
    ...common,
    ...readCertificates(certificates),
    ...tlsVersions,
    handshakeTimeout: handshakeMs,
    ...(isMutual(certificates) ? { requestCert: true, rejectUnauthorized: true } : {}),
  });
  const refresh = createRefresh(server as TlsServer, certificates, ctx);
  // Before the handshake begins: the listener that begins it was there first.
  server.prependListener('connection', refresh);
  server.on('tlsClientError', (error, socket) => {
    ctx.log.debug(`refused ${socket.remoteAddress ?? 'a caller'}: ${error.message}`);
    socket.destroy();
  });
  return server as Server;
}

function isMutual(certificates: CertificateFiles | undefined): boolean {
  return certificates?.caPath !== undefined;
}

type Attached = { server: Server; connections: Connections; options: ServeOptions };

function attach(
  ctx: Pick<BaseContext, 'log' | 'signal'>,
  { server, connections, options }: Attached,
): { requests: number; routes: readonly Route[] } {
  const { bodyBytes, times, authorize, renderError } = options;
  const served = { requests: 0, routes: options.routes };
  const room = createBodyRoom(bodiesBytes);
  server.prependListener('connection', (socket: Socket) => connections.add(socket));
  server.on('request', (req, res) => {
    const { socket } = req;
    // No request gets here without; should a version of Node.js think otherwise, it ends here.
    if (isMutual(options.certificates) && !(socket as TLSSocket).authorized) return void socket.destroy();
    served.requests += 1;
    connections.mark(socket, 'busy');
    const rules = { routes: served.routes, bodyBytes, authorize, renderError };
    const how = { ...rules, room, writeMs: times.writeMs, stopping: ctx.signal };
    void exchange(ctx, { req, res }, how).then(() => connections.mark(socket, 'kept'));
  });
  return served;
}
