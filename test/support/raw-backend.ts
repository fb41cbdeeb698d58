// An instance that tells what it was sent, byte for byte: the head of each request comes back as the body of its answer.

import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export type RawBackend = {
  readonly port: number /** Heads, in their order. */;
  readonly heads: string[];
  received(): string;
};

export async function startRawBackend(host = '127.0.0.1'): Promise<RawBackend> {
  const heads: string[] = [];
  const sockets = new Set<Socket>();
  let all = '';
  const server = createServer((socket) => {
    sockets.add(socket);
    let text = '';
    socket.setEncoding('latin1');
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (chunk: string) => {
      all += chunk;
      text += chunk;
      for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
        const head = text.slice(0, end);
        text = text.slice(end + 4);
        heads.push(head);
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${head.length}\r\n\r\n${head}`, 'latin1');
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, host, () => resolve()));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, heads, received: () => all };
}
