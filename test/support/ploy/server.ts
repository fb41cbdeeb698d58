// ploy's server on the loopback, as strict as the real one: a node that sends what the real one would refuse is refused.
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { freePort } from '../ports.ts';
import { createFaults, type PloyFaults } from './faults.ts';
import { addJob, endJob, type JobOptions } from './jobs.ts';
import type {
  JobStatus,
  PloyConnection,
  PloyJob,
  PloyRequest,
  PloyRoute,
  PloyState,
  Snapshot,
} from './model.ts';
import { addNode } from './nodes.ts';
import type { Pki } from './pki.ts';
import { createSnapshot, packFiles } from './repository.ts';
import { newConnection, serveRequest } from './serve.ts';

export type PloyOptions = {
  /** Served over TLS 1.3 for clients with a certificate of this authority; over plain HTTP where there is none. */
  pki?: Pki;
  nodeId?: string;
  /** The node is not known yet and has to exchange a token for a certificate; needs `pki`. */
  bootstrap?: boolean;
  /** Without it no run has a commit, and none can be fetched. */
  snapshot?: Snapshot | 'none';
  keptLogBytes?: number;
  seed?: number;
  port?: number;
  /** Its clock, as its answers tell it. */
  clockAheadMs?: number;
};

export type Ploy = {
  readonly url: string;
  readonly nodeId: string;
  readonly token: string;
  readonly state: PloyState;
  readonly faults: PloyFaults;
  /** Connections accepted so far, and handshakes that failed. */
  readonly connections: { accepted: number; refused: number };
  queueJob(options?: JobOptions): PloyJob;
  /** As an operator does: the node sees it when it asks for the status. */
  cancelJob(jobId: string): void;
  setStatus(jobId: string, status: JobStatus): void;
  /** Throws where there is none. */
  job(jobId: string): PloyJob;
  requestsTo(route: PloyRoute): PloyRequest[];
  /** Gives the hash that entries of a spec name it by, and the id for `bundle_map`. */
  addBundle(files: Readonly<Record<string, string>> | Buffer): { hash: string; bundleId: string };
  /** Looks after every request; throws with the requests so far after `timeoutMs`. */
  waitUntil(what: string, check: () => boolean, timeoutMs?: number): Promise<void>;
  /** A token that the node can exchange once. */
  issueBootstrapToken(options?: { nodeId?: string; expiresAtMs?: number }): string;
  /** Nobody answers at the address any more; what was known is kept. */
  goAway(): Promise<void>;
  comeBack(): Promise<void>;
  stop(): Promise<void>;
};

let sharedSnapshot: Snapshot | undefined;

export async function startPloy(options: PloyOptions = {}): Promise<Ploy> {
  const { pki, nodeId = 'node-1' } = options;
  const state = createState(options);
  if (options.bootstrap !== true) addNode(state, nodeId);
  const faults = createFaults(options.seed ?? 1);
  const watchers = new Set<() => void>();
  const look = (): void => {
    for (const watcher of [...watchers]) watcher();
  };
  const accepted = new Map<number, PloyConnection>();
  const isTls = pki !== undefined;
  const world = { state, faults, pki, isTls, connections: accepted, whenAnswered: look };
  const connections = { accepted: 0, refused: 0 };
  const server = createListener(options, (request, response) => {
    response.setHeader('date', new Date(Date.now() + (options.clockAheadMs ?? 0)).toUTCString());
    serveRequest(world, request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  server.on('connection', (socket: Socket) => {
    connections.accepted += 1;
    newConnection(accepted, socket);
  });
  server.on('tlsClientError', () => {
    connections.refused += 1;
  });
  // Not one that the kernel gives to clients as well: it is listened at again after a pause.
  await listen(server, options.port ?? (await freePort()));
  const { port } = server.address() as AddressInfo;
  const token = randomBytes(24).toString('hex');
  if (options.bootstrap !== true) state.tokens.add(token);
  const controls = createControls(state, nodeId, look);
  return {
    url: `${pki === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    ...{ nodeId, token, state, faults, connections, ...controls },
    waitUntil: async (what, check, timeoutMs = 60_000) =>
      await waitUntil({ watchers, state, what, check, timeoutMs }),
    goAway: async () => await close(server),
    comeBack: async () => await listen(server, port),
    stop: async () => {
      if (server.listening) await close(server);
    },
  };
}

function createState({ snapshot, keptLogBytes = 64 << 20 }: PloyOptions): PloyState {
  if (snapshot === undefined) sharedSnapshot ??= createSnapshot();
  return {
    ...{ nodes: new Map(), jobs: new Map(), snapshots: new Map(), bundles: new Map() },
    snapshot: snapshot === 'none' ? undefined : (snapshot ?? sharedSnapshot),
    ...{ requests: [], runEvents: [], violations: [], tokens: new Set(), bootstrapTokens: new Map() },
    keptLogBytes,
  };
}

function createListener({ pki, bootstrap = false }: PloyOptions, listener: RequestListener): Server {
  const server =
    pki === undefined
      ? createHttpServer(listener)
      : createHttpsServer(
          {
            cert: readFileSync(pki.server.cert),
            key: readFileSync(pki.server.key),
            ca: readFileSync(pki.ca.cert),
            minVersion: 'TLSv1.3',
            requestCert: true,
            // Whoever is to exchange a token has no certificate: then each request is looked at instead.
            rejectUnauthorized: !bootstrap,
          },
          listener,
        );
  // Longer than any client keeps a connection, so that none is closed just as it is used again.
  server.keepAliveTimeout = 120_000;
  return server;
}

function createControls(state: PloyState, nodeId: string, look: () => void) {
  const job = (jobId: string): PloyJob => {
    const found = state.jobs.get(jobId);
    if (found === undefined) throw new Error(`there is no job ${jobId}`);
    return found;
  };
  const setStatus = (jobId: string, status: JobStatus): void => {
    endJob(state, job(jobId), status);
    look();
  };
  return {
    job,
    setStatus,
    queueJob: (options: JobOptions = {}) => addJob(state, options),
    cancelJob: (jobId: string) => setStatus(jobId, 'Cancelled'),
    requestsTo: (route: PloyRoute) => state.requests.filter((request) => request.route === route),
    addBundle: (files: Readonly<Record<string, string>> | Buffer) => {
      const bytes = Buffer.isBuffer(files) ? files : packFiles(files);
      const digest = createHash('sha256').update(bytes).digest('hex');
      const bundleId = `bundle-${digest.slice(0, 16)}`;
      state.bundles.set(bundleId, bytes);
      return { hash: digest.slice(0, 12), bundleId };
    },
    issueBootstrapToken: (options: { nodeId?: string; expiresAtMs?: number } = {}) => {
      const token = randomBytes(24).toString('hex');
      const { nodeId: id = nodeId, expiresAtMs = Date.now() + 900_000 } = options;
      state.bootstrapTokens.set(token, { nodeId: id, isUsed: false, expiresAtMs });
      return token;
    },
  };
}

async function waitUntil(wait: {
  watchers: Set<() => void>;
  state: PloyState;
  what: string;
  check: () => boolean;
  timeoutMs: number;
}): Promise<void> {
  const { watchers, check } = wait;
  if (check()) return;
  await new Promise<void>((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      watchers.delete(watcher);
    };
    const watcher = (): void => {
      if (!check()) return;
      end();
      resolve();
    };
    const timer = setTimeout(() => {
      end();
      const last = wait.state.requests
        .slice(-20)
        .map(({ method, path, status }) => `${method} ${path} ${status}`);
      reject(
        new Error(`${wait.what}: not within ${wait.timeoutMs} ms; the last requests:\n${last.join('\n')}`),
      );
    }, wait.timeoutMs);
    watchers.add(watcher);
  });
}

async function listen(server: Server, port: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      server.removeListener('error', reject);
      resolve();
    });
  });
}

async function close(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closed;
}
