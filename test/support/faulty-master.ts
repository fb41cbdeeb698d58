// A proxy whose master answers otherwise than it does: all that is said to it passes here, and is the real one's but for what a
// test makes of it.
import { renameSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from './after-test.ts';
import type { TestProxy } from './proxy.ts';

/** What becomes of an answer; undefined: the connection ends without one. */
export type Alter = (request: string, answer: string) => string | undefined | Promise<string | undefined>;

/** Not before a reload, which would bring the master's own socket back. */
export async function alterMaster({ at }: TestProxy, alter: Alter): Promise<void> {
  const real = `${at.masterSocket}.real`;
  renameSync(at.masterSocket, real);
  const connections = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (client) => {
    connections.add(client);
    client.on('error', () => {});
    let request = '';
    let isAsked = false;
    const pass = async (): Promise<void> => {
      if (isAsked) return;
      isAsked = true;
      const text = await alter(request, await askReal(real, request));
      if (text === undefined) client.destroy();
      else client.end(text);
    };
    client.on('data', (chunk: Buffer) => {
      request += chunk.toString();
      if (request.endsWith('\nquit\n')) void pass();
    });
    client.on('end', () => void pass());
  });
  await new Promise<void>((resolve) => server.listen(at.masterSocket, resolve));
  onTestFinished(() => {
    for (const connection of connections) connection.destroy();
    server.close();
  });
}

function askReal(path: string, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path, allowHalfOpen: true });
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('end', () => {
      socket.destroy();
      resolve(Buffer.concat(chunks).toString());
    });
    if (request.endsWith('\nquit\n')) socket.write(request);
    else socket.end(request);
  });
}
