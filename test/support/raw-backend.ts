// An instance that tells what it was sent, byte for byte: the head of each request comes back as the body of its answer, and in a
// tunnel what was said in it.
import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import { onTestFinished } from './after-test.ts';

const switched = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n';

export type RawBackend = {
  readonly port: number /** Heads, in their order. */;
  readonly heads: string[];
  received(): string;
};

export async function startRawBackend(
  host = '127.0.0.1',
  { upgrades = false }: { upgrades?: boolean } = {},
): Promise<RawBackend> {
  const heads: string[] = [];
  const sockets = new Set<Socket>();
  let all = '';
  const server = createServer((socket) => {
    sockets.add(socket);
    let text = '';
    let isTunnel = false;
    socket.setEncoding('latin1');
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (chunk: string) => {
      all += chunk;
      if (isTunnel) return void socket.write(chunk, 'latin1');
      text += chunk;
      for (let end = endOfRequest(text); end !== undefined; end = endOfRequest(text)) {
        const head = text.slice(0, text.indexOf('\r\n\r\n'));
        text = text.slice(end);
        heads.push(head);
        if (upgrades && /^upgrade:/im.test(head)) {
          isTunnel = true;
          socket.write(`${switched}${text}`, 'latin1');
          return;
        }
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

/** With its body; undefined while it has not come whole. */
function endOfRequest(text: string): number | undefined {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const head = text.slice(0, end);
  if (/^transfer-encoding: *chunked/im.test(head)) return endOfChunks(text, end + 4);
  const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
  return text.length < end + 4 + length ? undefined : end + 4 + length;
}

function endOfChunks(text: string, from: number): number | undefined {
  for (let at = from; ; ) {
    const line = text.indexOf('\r\n', at);
    const size = Number.parseInt(text.slice(at, line), 16);
    if (line < 0 || Number.isNaN(size)) return undefined;
    at = line + 2 + size + 2;
    if (at > text.length) return undefined;
    if (size === 0) return at;
  }
}
