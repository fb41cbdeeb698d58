// What Caddy does to HAProxy: requests that name their route, kept and fresh connections, and upgrades.
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from './after-test.ts';

export type BalancerAnswer = { status: number; body: string };

export type BalancerRequest = {
  method?: string;
  path?: string;
  headers?: Readonly<Record<string, string>>;
  agent?: Agent;
};

const timeoutMs = 15_000;

/** Throws unless something answers. */
export function askBalancer(
  address: string,
  route: string,
  options: BalancerRequest = {},
): Promise<BalancerAnswer> {
  const { method = 'GET', path = '/', headers = {}, agent } = options;
  const { hostname: host, port } = new URL(`http://${address}`);
  return new Promise((resolve, reject) => {
    const outgoing = request({
      host,
      port,
      method,
      path,
      headers: { host: 'client.test', 'x-reeve-route': route, ...headers },
      agent: agent ?? false,
      signal: AbortSignal.timeout(timeoutMs),
    });
    outgoing.on('error', reject);
    outgoing.once('response', (response: IncomingMessage) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        body += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: body.trim() }));
      response.on('error', reject);
    });
    outgoing.end();
  });
}

export type Tunnel = {
  /** What comes back for it. Throws if nothing does. */
  say(text: string): Promise<string>;
  isOpen(): boolean;
  close(): void;
};

/** A WebSocket as far as a proxy can tell: the handshake, and bytes after it. */
export function openTunnel(address: string, route: string): Promise<Tunnel> {
  const { hostname: host, port } = new URL(`http://${address}`);
  const socket = connect(Number(port), host);
  onTestFinished(() => void socket.destroy());
  let text = '';
  let closed = false;
  let notify = (): void => {};
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => {
    text += chunk;
    notify();
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    closed = true;
    notify();
  });
  const read = (isWhole: () => boolean): Promise<string> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`only ${JSON.stringify(text)} came`)), timeoutMs);
      notify = (): void => {
        if (!closed && !isWhole()) return;
        clearTimeout(timer);
        const taken = text;
        text = '';
        if (closed) reject(new Error(`it was closed after ${JSON.stringify(taken)}`));
        else resolve(taken);
      };
      notify();
    });
  socket.write(
    [
      'GET /tunnel HTTP/1.1',
      'Host: client.test',
      `X-Reeve-Route: ${route}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      '\r\n',
    ].join('\r\n'),
  );
  return read(() => text.includes('\r\n\r\n')).then((head) => {
    if (!head.startsWith('HTTP/1.1 101 ')) throw new Error(`no tunnel: ${head.split('\r\n')[0]}`);
    return {
      isOpen: () => !closed,
      close: () => socket.destroy(),
      say: (said: string) => {
        socket.write(said);
        return read(() => text.endsWith(said));
      },
    };
  });
}

export type BalancerTraffic = { served: number; failures: string[]; by: Record<string, number> };

/** So many requests a second, every other one on a kept connection, each fifth a POST, until it is stopped. */
export function startBalancerTraffic(
  address: string,
  route: string,
  perSecond: number,
): { readonly traffic: BalancerTraffic; stop(): Promise<BalancerTraffic> } {
  const traffic: BalancerTraffic = { served: 0, failures: [], by: {} };
  const agent = new Agent({ keepAlive: true, maxSockets: 32, timeout: 3_000 });
  const underWay = new Set<Promise<void>>();
  let running = true;
  const send = async (count: number): Promise<void> => {
    const method = count % 5 === 0 ? 'POST' : 'GET';
    try {
      const { status, body } = await askBalancer(address, route, {
        method,
        ...(count % 2 === 0 && { agent }),
      });
      if (status !== 200) throw new Error(`${status} ${body}`);
      traffic.served += 1;
      traffic.by[body] = (traffic.by[body] ?? 0) + 1;
    } catch (error) {
      traffic.failures.push(`${method}: ${String(error)}`);
    }
  };
  const loop = async (): Promise<void> => {
    const startedAt = performance.now();
    for (let count = 0; running; ) {
      for (const due = ((performance.now() - startedAt) / 1000) * perSecond; count < due; count += 1) {
        const sent = send(count).finally(() => underWay.delete(sent));
        underWay.add(sent);
      }
      await sleep(5);
    }
  };
  const looped = loop();
  return {
    traffic,
    stop: async () => {
      running = false;
      await looped;
      await Promise.all(underWay);
      agent.destroy();
      return traffic;
    },
  };
}
