// Load on the node's proxy: many kept connections with requests to instances in turn, whose answers say who gave them.

import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from './after-test.ts';

export type NamingInstance = {
  readonly name: string /** It listens on each of them. */;
  readonly ports: readonly number[];
};

/** Each answers every request, at all of its ports, with its name and the port. */
export async function startNamingInstances(count: number, portsEach: number): Promise<NamingInstance[]> {
  return await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const name = `i-${index}`;
      return { name, ports: await Promise.all(Array.from({ length: portsEach }, () => startNaming(name))) };
    }),
  );
}

async function startNaming(name: string): Promise<number> {
  const sockets = new Set<Socket>();
  let answer = Buffer.alloc(0);
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    // One request at a time comes on a connection, and these are small.
    socket.on('data', (chunk: Buffer) => {
      if (chunk.includes('\r\n\r\n')) socket.write(answer);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  const { port } = server.address() as AddressInfo;
  const body = `${name} ${port}`;
  answer = Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return port;
}

export type LoadResult = {
  requests: number;
  /** Answers of another instance than the one asked, as `i-1 asked, i-2 20001 answered`. */
  wrong: string[];
  /** Statuses other than 200, and connections that ended. */
  failed: string[];
  seconds: number;
};

export type LoadOptions = {
  connections: number;
  requests: number;
  /** The path of the nth request, and the name that its answer has to begin with. */
  next(count: number): { path: string; name: string; method?: 'GET' | 'POST' };
};

export async function sendLoad(
  port: number,
  { connections, requests, next }: LoadOptions,
): Promise<LoadResult> {
  const result: LoadResult = {
    requests: 0,
    wrong: [],
    failed: [],
    seconds: 0,
  };
  const startedAt = performance.now();
  let sent = 0;
  const one = (): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1');
      socket.setNoDelay(true);
      let text = '';
      let asked = { path: '', name: '' };
      const ask = (): void => {
        if (sent >= requests) return void socket.end();
        const request = next(sent);
        sent += 1;
        asked = request;
        const body = request.method === 'POST' ? 'Content-Length: 4\r\n\r\ndata' : '\r\n';
        socket.write(`${request.method ?? 'GET'} ${request.path} HTTP/1.1\r\nHost: g\r\n${body}`);
      };
      socket.setEncoding('latin1');
      socket.on('connect', ask);
      socket.on('data', (chunk: string) => {
        text += chunk;
        const body = readBody(text);
        if (body === undefined) return;
        result.requests += 1;
        if (!text.startsWith('HTTP/1.1 200 ')) result.failed.push(`${asked.path}: ${text.split('\r\n')[0]}`);
        else if (!`${body} `.startsWith(`${asked.name} `))
          result.wrong.push(`${asked.name} asked, ${body} answered`);
        text = '';
        ask();
      });
      socket.on('error', (error) => result.failed.push(`${asked.path}: ${error.message}`));
      socket.on('close', () => resolve());
    });
  await Promise.all(Array.from({ length: connections }, one));
  result.seconds = (performance.now() - startedAt) / 1000;
  return result;
}

/** Undefined while the answer has not come whole. */
function readBody(text: string): string | undefined {
  const end = text.indexOf('\r\n\r\n');
  const length = Number(/^content-length: *(\d+)/im.exec(text.slice(0, Math.max(0, end)))?.[1] ?? Number.NaN);
  return text.length >= end + 4 + length ? text.slice(end + 4) : undefined;
}
