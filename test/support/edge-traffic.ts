// What people behind an edge do: requests on fresh and on kept connections, and WebSockets that stay open.
import { randomBytes } from 'node:crypto';
import { Agent, request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type TLSSocket } from 'node:tls';

export type EdgePlace = {
  port: number;
  domain: string;
  /** Root of the edge's own authority. */
  ca: string;
};

export type EdgeTraffic = {
  served: number;
  failures: string[];
  /** How many requests each version answered: the second word of the body, as in `web v1 on 0123`. */
  versions: Record<string, number>;
};

export type RunningEdgeTraffic = {
  readonly traffic: EdgeTraffic;
  /** Ends it, and waits for the requests under way. */
  stop(): Promise<EdgeTraffic>;
};

const requestTimeoutMs = 15_000;
/** Connections that are kept open between requests. */
const keptConnections = 16;
/** At one time. A machine that cannot answer so many a second is asked less: waiting for its turn would count as no answer. */
const mostUnderWay = 100;

/** So many a second at most, half of them on connections of their own, half on kept ones, until it is stopped. */
export function startEdgeTraffic(place: EdgePlace, perSecond: number): RunningEdgeTraffic {
  const traffic: EdgeTraffic = { served: 0, failures: [], versions: {} };
  const kept = new Agent({ keepAlive: true, maxSockets: keptConnections });
  const underWay = new Set<Promise<void>>();
  const ending = new AbortController();
  const startedAt = performance.now();
  const send = (count: number): void => {
    const one = sendOne(place, count % 2 === 0 ? false : kept, traffic);
    underWay.add(one);
    void one.finally(() => underWay.delete(one));
  };
  const run = async (): Promise<void> => {
    for (let sent = 0; !ending.signal.aborted; ) {
      const due = ((performance.now() - startedAt) / 1000) * perSecond;
      for (; sent < due; sent += 1) if (underWay.size < mostUnderWay) send(sent);
      await sleep(2);
    }
  };
  const done = run();
  return {
    traffic,
    stop: async () => {
      ending.abort();
      await done;
      await Promise.all(underWay);
      kept.destroy();
      return traffic;
    },
  };
}

async function sendOne(place: EdgePlace, agent: Agent | false, traffic: EdgeTraffic): Promise<void> {
  try {
    const { status, body } = await askEdge(place, { agent });
    if (status !== 200) throw new Error(`status ${status}: ${body.slice(0, 80)}`);
    traffic.served += 1;
    const version = body.split(' ')[1] ?? '?';
    traffic.versions[version] = (traffic.versions[version] ?? 0) + 1;
  } catch (error) {
    const connection = agent === false ? 'fresh' : 'kept';
    traffic.failures.push(`${new Date().toISOString()} ${connection}: ${String(error)}`);
  }
}

/** One request. Throws unless something answers. */
export function askEdge(
  { port, domain, ca }: EdgePlace,
  { agent = false, path = '/' }: { agent?: Agent | false; path?: string } = {},
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        ...{ host: '127.0.0.1', port, path, ca, agent, servername: domain },
        headers: { host: domain },
        signal: AbortSignal.timeout(requestTimeoutMs),
      },
      (response) => {
        let body = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          body += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body: body.trim() }));
        response.on('error', reject);
      },
    );
    outgoing.on('error', reject);
    outgoing.end();
  });
}

export type Tunnel = {
  /** What the server said first: who it is. */
  readonly greeting: string;
  /** Set once it has ended. */
  readonly closedAt: number | undefined;
  /** A message there and back. Throws where it does not come back. */
  echo(): Promise<void>;
  close(): void;
};

/** Opens a WebSocket and waits for the server's greeting. */
export async function openTunnel({ port, domain, ca }: EdgePlace): Promise<Tunnel> {
  const socket = connect({ host: '127.0.0.1', port, servername: domain, ca, ALPNProtocols: ['http/1.1'] });
  const reader = readFrames(socket);
  const key = randomBytes(16).toString('base64');
  const head = [
    'GET /ws HTTP/1.1',
    `Host: ${domain}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${key}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  const greeting = await reader.next();
  return {
    greeting,
    get closedAt() {
      return reader.closedAt();
    },
    echo: async () => {
      const word = randomBytes(4).toString('hex');
      const mask = randomBytes(4);
      const masked = Buffer.from(word).map((byte, at) => byte ^ (mask[at % 4] as number));
      socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | word.length]), mask, masked]));
      const back = await reader.next();
      if (back !== word) throw new Error(`sent ${word}, got ${back}`);
    },
    close: () => socket.destroy(),
  };
}

/** The payloads of small unmasked frames, after the head of the answer. */
function readFrames(socket: TLSSocket): { next(): Promise<string>; closedAt(): number | undefined } {
  const frames: string[] = [];
  let rest: Buffer = Buffer.alloc(0);
  let isOpen = false;
  let closedAt: number | undefined;
  let wake = (): void => {};
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    try {
      const body = isOpen ? rest : takeHead(rest);
      isOpen ||= body !== rest;
      rest = body;
      if (isOpen) rest = takeFrames(rest, frames);
    } catch (error) {
      socket.destroy(error as Error);
    }
    wake();
  });
  let failure: unknown = new Error('the tunnel is closed');
  socket.on('error', (error) => {
    failure = error;
  });
  socket.on('close', () => {
    closedAt ??= Date.now();
    wake();
  });
  return {
    closedAt: () => closedAt,
    next: async () => {
      const until = performance.now() + requestTimeoutMs;
      for (;;) {
        const frame = frames.shift();
        if (frame !== undefined) return frame;
        if (closedAt !== undefined) throw failure;
        if (performance.now() > until) throw new Error('no answer in the tunnel');
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, 1000);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
    },
  };
}

/** What follows the head of a 101; the same bytes while it is not whole. Throws on any other answer. */
function takeHead(bytes: Buffer): Buffer {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return bytes;
  const status = bytes.subarray(0, bytes.indexOf('\r\n')).toString();
  if (!status.includes(' 101 ')) throw new Error(status);
  return bytes.subarray(end + 4);
}

/** Moves whole frames to the list and gives the rest. Throws where the other side says goodbye. */
function takeFrames(bytes: Buffer, frames: string[]): Buffer {
  let at = 0;
  while (bytes.length >= at + 2) {
    const length = (bytes[at + 1] as number) & 0x7f;
    if (bytes.length < at + 2 + length) break;
    if (((bytes[at] as number) & 0x0f) === 8) throw new Error('the other side has closed the tunnel');
    frames.push(bytes.subarray(at + 2, at + 2 + length).toString());
    at += 2 + length;
  }
  return bytes.subarray(at);
}
