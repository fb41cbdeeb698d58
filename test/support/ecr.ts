// A private registry of AWS: its token service, and a real registry behind the name and the certificate of one. An engine
// reaches it through a proxy, as it would reach AWS's from a closed network.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import {
  createServer as createProxy,
  type IncomingMessage,
  type ServerResponse,
  request as send,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type JsonService, requireFields, startJsonService } from './json-service.ts';

export type EcrService = JsonService & {
  /** What it hands out from now on. */
  password: string;
  /** Of the tokens, from the asking. */
  validMs: number;
};

export async function startEcr(region: string, password: string): Promise<EcrService> {
  const about = { password, validMs: 12 * 60 * 60_000 };
  const GetAuthorizationToken = (input: Readonly<Record<string, unknown>>): unknown => {
    requireFields(input, { registryIds: Array.isArray });
    const token = {
      authorizationToken: Buffer.from(`AWS:${service.password}`).toString('base64'),
      expiresAt: (Date.now() + service.validMs) / 1000,
      proxyEndpoint: `https://123456789012.dkr.ecr.${region}.amazonaws.com`,
    };
    return { authorizationData: [token] };
  };
  const target = 'AmazonEC2ContainerRegistry_V20150921';
  const operations = { GetAuthorizationToken };
  const service = Object.assign(
    await startJsonService({ service: 'ecr', target, region, operations }),
    about,
  );
  return service;
}

export type Front = {
  /** What an engine needs in its environment to get to it. */
  readonly env: Readonly<Record<string, string>>;
  /** `127.0.0.1:PORT` of the registry that serves. */
  target: string;
  stop(): Promise<void>;
};

/** `host`, as its name stands in references, served over TLS by the registry at `target`. */
export async function startFront(host: string, directory: string, target: string): Promise<Front> {
  const { key, cert } = makeCertificate(host, directory);
  const tls = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) });
  const proxy = createProxy();
  const front = { target };
  tls.on('request', (request, response) => forward(request, response, front.target));
  proxy.on('connect', (request, socket) => {
    if (request.url !== `${host}:443`) {
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
      return;
    }
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    tls.emit('connection', socket);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const { port } = proxy.address() as AddressInfo;
  return Object.assign(front, {
    env: { HTTPS_PROXY: `http://127.0.0.1:${port}`, SSL_CERT_FILE: cert },
    stop: async () => {
      tls.closeAllConnections();
      proxy.closeAllConnections();
      await new Promise((resolve) => proxy.close(resolve));
    },
  });
}

function makeCertificate(host: string, directory: string): { key: string; cert: string } {
  const key = join(directory, 'key.pem');
  const cert = join(directory, 'cert.pem');
  const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const subject = ['-subj', '/CN=registry', '-addext', `subjectAltName=DNS:${host}`];
  execFileSync('openssl', ['req', ...kind, ...subject, '-keyout', key, '-out', cert], { stdio: 'pipe' });
  return { key, cert };
}

function forward(request: IncomingMessage, response: ServerResponse, target: string): void {
  const [host, port] = target.split(':');
  const { method, url, headers } = request;
  const onward = send({
    host,
    port,
    method,
    path: url,
    headers: { ...headers, 'x-forwarded-proto': 'https' },
  });
  onward.on('response', (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  onward.on('error', () => response.destroy());
  request.pipe(onward);
}
