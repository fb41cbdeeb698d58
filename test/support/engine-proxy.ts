// A socket in front of a real engine that records every request, and lets a test step in before a request reaches the
// engine or before its answer comes back.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from './after-test.ts';

export type EngineProxy = {
  readonly socket: string;
  /** `METHOD /path` of each request so far, the API version left out. */
  readonly lines: string[];
  /** Called with each line; what it returns is waited for. */
  beforeRequest: (line: string) => Promise<void> | void;
  beforeAnswer: (line: string) => Promise<void> | void;
  /** Once the engine has answered all that it was asked so far, though who asked may be gone. */
  settled(): Promise<void>;
  /** What it returns is answered instead of asking the engine. */
  answerInstead: (line: string) => { status: number; body: unknown } | undefined;
};

/** Tests that run side by side pass their own hook. */
export async function startEngineProxy(
  engineSocket: string,
  whenFinished: (clean: () => Promise<void>) => void = onTestFinished,
): Promise<EngineProxy> {
  const dir = mkdtempSync(join(tmpdir(), 'reeve-proxy-'));
  const asked = new Set<Promise<void>>();
  const proxy: EngineProxy = {
    socket: join(dir, 'engine.sock'),
    lines: [],
    beforeRequest: () => {},
    beforeAnswer: () => {},
    answerInstead: () => undefined,
    settled: async () => void (await Promise.all(asked)),
  };
  const open = new Set<Socket>();
  const server = createServer((incoming, outgoing) => {
    const asking: Promise<void> = forward(proxy, engineSocket, incoming, outgoing)
      .catch(() => void outgoing.destroy())
      .finally(() => asked.delete(asking));
    asked.add(asking);
  });
  server.on('connection', (connection) => {
    open.add(connection);
    connection.once('close', () => open.delete(connection));
  });
  await new Promise<void>((resolve) => server.listen(proxy.socket, resolve));
  whenFinished(async () => {
    for (const connection of open) connection.destroy();
    await new Promise((resolve) => server.close(resolve));
    rmSync(dir, { recursive: true, force: true });
  });
  return proxy;
}

async function forward(
  proxy: EngineProxy,
  engineSocket: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const line = `${incoming.method} ${incoming.url?.replace(/^\/v[\d.]+/, '').replace(/\?.*/, '')}`;
  proxy.lines.push(line);
  await proxy.beforeRequest(line);
  const instead = proxy.answerInstead(line);
  if (instead !== undefined) {
    incoming.resume();
    outgoing.writeHead(instead.status, { 'content-type': 'application/json', 'api-version': '1.41' });
    outgoing.end(JSON.stringify(instead.body));
    return;
  }
  const gone = (): Error => new Error('who asked is gone');
  if (incoming.destroyed) throw gone();
  const { method, url, headers } = incoming;
  const onward = request({
    socketPath: engineSocket,
    ...{ method, path: url, headers },
  });
  incoming.pipe(onward);
  incoming.once('close', () => {
    if (!onward.writableEnded) onward.destroy(gone());
  });
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    onward.once('response', resolve);
    onward.once('error', reject);
  });
  await proxy.beforeAnswer(line);
  outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
  outgoing.flushHeaders();
  answer.pipe(outgoing);
  outgoing.once('close', () => onward.destroy());
}

type KillableProgram = { child: { kill(signal: 'SIGKILL'): boolean }; ended: Promise<unknown> };

/**
 * Kills the program at the point-th time, counted from 1, that the proxy sees a request of it or an answer to it. Resolves once it has
 * ended and what it has asked for is done, with how many it has seen: as many as the point, or less where there was no such point.
 */
export async function killAtPoint(
  program: KillableProgram,
  proxy: EngineProxy,
  point: number,
): Promise<number> {
  let seen = 0;
  const step = async (): Promise<void> => {
    if (seen === point) return;
    seen += 1;
    if (seen !== point) return;
    program.child.kill('SIGKILL');
    await program.ended;
  };
  proxy.beforeRequest = step;
  proxy.beforeAnswer = step;
  await program.ended;
  proxy.beforeRequest = () => {};
  proxy.beforeAnswer = () => {};
  await proxy.settled();
  return seen;
}
