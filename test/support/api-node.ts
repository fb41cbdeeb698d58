// A node with the section `jobs` alone whose API is called: on a socket that a stand-in for systemd holds, or on an address.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type Agent, request as requestPlain } from 'node:http';
import { type RequestOptions, request as requestTls } from 'node:https';
import { join } from 'node:path';
import { type CertificateFiles, createPki, type Pki } from './ploy/pki.ts';
import { holdSocket, type SocketHolder } from './socket-holder.ts';
import { makeTempDir } from './temp.ts';

export type ApiNode = {
  readonly root: string;
  readonly pki: Pki;
  readonly stateDir: string;
  readonly files: { cert: string; key: string; ca: string };
  readonly env: Readonly<Record<string, string>>;
  readonly configFile: string;
  /** Starts to hold the socket; the API's own idle time in seconds. */
  hold(idleSeconds?: number, extra?: Readonly<Record<string, string>>): Promise<SocketHolder>;
};

export type ApiNodeOptions = {
  tls?: boolean;
  http?: Readonly<Record<string, unknown>>;
  jobs?: Readonly<Record<string, unknown>>;
  env?: Readonly<Record<string, string>>;
};

export function makeApiNode({
  tls = true,
  http = {},
  jobs = {},
  env: extra = {},
}: ApiNodeOptions = {}): ApiNode {
  const root = makeTempDir();
  const pki = createPki(join(root));
  const at = (name: string): string => join(root, 'etc-ploy', name);
  const files = { cert: at('node.crt'), key: at('node.key'), ca: at('ca.crt') };
  mkdirSync(at(''));
  // The node's certificate names 127.0.0.1 here, so that clients can verify it.
  placeCertificate(files, pki.server);
  copyFileSync(pki.ca.cert, files.ca);
  const configFile = join(root, 'reeve.yaml');
  const paths = { enabled: tls, cert_path: files.cert, key_path: files.key, ca_path: files.ca };
  const section = {
    server_url: 'http://127.0.0.1:9',
    node_id: 'node-1',
    http: { listen: '127.0.0.1:8444', tls: paths, ...http },
    ...jobs,
  };
  writeFileSync(configFile, JSON.stringify({ jobs: section }));
  const env = {
    REEVE_CONFIG: configFile,
    REEVE_STATE: join(root, 'state'),
    REEVE_RUN: join(root, 'run'),
    REEVE_CACHE: join(root, 'cache'),
    ...extra,
  };
  return {
    ...{ root, pki, stateDir: join(root, 'state'), files, env, configFile },
    hold: (idleSeconds = 0.05, more = {}) =>
      holdSocket(['api', 'jobs', '--idle', String(idleSeconds)], { ...env, ...more }),
  };
}

export function placeCertificate(files: { cert: string; key: string }, from: CertificateFiles): void {
  copyFileSync(from.key, files.key);
  copyFileSync(from.cert, files.cert);
}

export type ApiAnswer = {
  status: number;
  text: string;
  headers: Readonly<Record<string, string | string[] | undefined>>;
};

export type ApiCall = {
  method?: string;
  path?: string;
  body?: string | Buffer;
  /** Default: the node's own certificate of the cluster. `none`: without any; undefined pki: without TLS. */
  as?: CertificateFiles | 'none';
  agent?: Agent | false;
  options?: RequestOptions;
  signal?: AbortSignal;
};

/** One request on a connection of its own. Rejects where there is no answer. */
export async function callApi(port: number, pki: Pki | undefined, call: ApiCall = {}): Promise<ApiAnswer> {
  const {
    method = 'GET',
    path = '/health',
    body,
    as = pki?.node,
    agent = false,
    options = {},
    signal,
  } = call;
  const identity =
    as === undefined || as === 'none' ? {} : { cert: readFileSync(as.cert), key: readFileSync(as.key) };
  const tls = pki === undefined ? {} : { ca: readFileSync(pki.ca.cert), ...identity };
  const about = {
    ...{ host: '127.0.0.1', port, method, path, agent },
    ...tls,
    ...options,
    ...(signal === undefined ? {} : { signal }),
  };
  return await new Promise((resolve, reject) => {
    const outgoing = (pki === undefined ? requestPlain : requestTls)(about, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('end', () => {
        resolve({
          status: response.statusCode ?? 0,
          text: Buffer.concat(chunks).toString(),
          headers: response.headers,
        });
        outgoing.destroy();
      });
      response.once('error', reject);
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}
