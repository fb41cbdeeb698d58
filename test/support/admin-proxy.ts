// Stands before a real admin API of Caddy: lets a test step in before a request arrives, or keep it from arriving.
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from './after-test.ts';

export type AdminProxy = {
  readonly admin: string;
  /** `METHOD /path` of each request so far. */
  readonly lines: string[];
  /** Waited for. Answers a status that is given instead of Caddy's answer, or `reset`: the connection ends. */
  beforeRequest: (line: string) => Promise<number | 'reset' | undefined> | number | 'reset' | undefined;
};

export async function startAdminProxy(admin: string): Promise<AdminProxy> {
  const lines: string[] = [];
  const server = createServer((incoming, outgoing) => {
    forward(proxy, admin, incoming, outgoing).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy: AdminProxy = {
    admin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    lines,
    beforeRequest: () => undefined,
  };
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return proxy;
}

async function forward(
  proxy: AdminProxy,
  admin: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const line = `${incoming.method} ${incoming.url}`;
  proxy.lines.push(line);
  const instead = await proxy.beforeRequest(line);
  if (instead === 'reset') {
    incoming.socket.resetAndDestroy();
    return;
  }
  if (instead !== undefined) {
    outgoing.writeHead(instead).end(`{"error":"status ${instead} of the test"}`);
    return;
  }
  const headers = { ...incoming.headers, host: new URL(admin).host };
  const onward = request(new URL(incoming.url ?? '/', admin), {
    method: incoming.method,
    headers,
    agent: false,
  });
  incoming.pipe(onward);
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    onward.once('response', resolve);
    onward.once('error', reject);
  });
  outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
  for await (const chunk of answer) outgoing.write(chunk);
  if (Object.keys(answer.trailers).length > 0)
    outgoing.addTrailers(answer.trailers as Record<string, string>);
  outgoing.end();
}
