// Small HTTP servers that a proxy sends requests to: each answers with its name and what it was asked.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Backend } from '../../src/lib/edge/route.ts';
import { onTestFinished } from './after-test.ts';
import { freePort } from './ports.ts';

export type TestBackend = Backend & {
  /** Ends it with every connection. Another may listen there then. */
  stop(): Promise<void>;
};

export type BackendOptions = { host?: string; port?: number; status?: number };

/** Answers `NAME METHOD PATH BODY`, and the route that was named to it, if any: `... for ROUTE`. */
export async function startBackend(name: string, options: BackendOptions = {}): Promise<TestBackend> {
  const { host = '127.0.0.1', port = 0, status = 200 } = options;
  const server = createServer((incoming, outgoing) => {
    let body = '';
    incoming.setEncoding('utf8');
    incoming.on('data', (chunk: string) => {
      body += chunk;
    });
    incoming.on('end', () => {
      const route = incoming.headers['x-reeve-route'];
      const words = [name, incoming.method, incoming.url, ...(body === '' ? [] : [body])];
      outgoing.writeHead(status);
      outgoing.end([...words, ...(route === undefined ? [] : ['for', String(route)])].join(' '));
    });
  });
  // Not one that the kernel gives to clients as well: nobody is to be there once it is stopped.
  const at = port === 0 ? await freePort() : port;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(at, host, resolve);
  });
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopped ??= new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
    return stopped;
  };
  onTestFinished(stop);
  return { host, port: (server.address() as AddressInfo).port, stop };
}
