// An HTTP service with a network in between: it records and counts requests, answers late, and does to single ones what
// networks and overloaded services do. What a request is for is the caller's to tell.
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { onTestFinished } from './after-test.ts';

export type Seen = {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** By `performance.now()`. */
  readonly at: number;
  /** What is asked of SQS and SNS: `ReceiveMessage`. */
  readonly action: string | undefined;
  /** The body of such a question. */
  readonly question: string | undefined;
};

/** `loseAnswer`: the service has done it. `cutAnswer`: after half of the body. `stall`: after the headers nothing comes. */
export type Fault =
  | { kind: 'answer'; status: number; headers?: Readonly<Record<string, string>>; body?: string }
  | { kind: 'reset' | 'loseAnswer' | 'cutAnswer' | 'stall' | 'silence' }
  | { kind: 'trickle'; bytesPerSecond: number };

export type FaultyProxy = {
  readonly endpoint: string;
  readonly seen: Seen[];
  /** The most requests that were under way at a time. */
  mostAtOnce: number;
  /** How long the service seems to take before it answers. */
  delayMs: number;
  /** Asked for each request, and waited for; undefined lets it pass. */
  fault: (seen: Seen, count: number) => Fault | undefined | Promise<Fault | undefined>;
  /** Added to each answer, over the service's own. */
  answerHeaders: Record<string, string>;
  /** Left out of requests, as by a service that does not know them. */
  droppedHeaders: readonly string[];
  /** Forgets what it has counted and every fault. */
  reset(): void;
};

/** Tests that share one pass their own hook. */
export async function startFaultyProxy(
  endpoint: string,
  whenFinished: (clean: () => Promise<void>) => void = onTestFinished,
): Promise<FaultyProxy> {
  const open = new Set<Socket>();
  let underWay = 0;
  const server = createServer((incoming, outgoing) => {
    underWay += 1;
    proxy.mostAtOnce = Math.max(proxy.mostAtOnce, underWay);
    outgoing.once('close', () => {
      underWay -= 1;
    });
    handle(proxy, new URL(endpoint), incoming, outgoing).catch(() => outgoing.destroy());
  });
  server.on('connection', (connection) => {
    open.add(connection);
    connection.once('close', () => open.delete(connection));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy: FaultyProxy = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ...{ seen: [], mostAtOnce: 0, delayMs: 0, fault: () => undefined, answerHeaders: {}, droppedHeaders: [] },
    reset: () => {
      proxy.seen.length = 0;
      Object.assign(proxy, {
        mostAtOnce: 0,
        delayMs: 0,
        fault: () => undefined,
        answerHeaders: {},
        droppedHeaders: [],
      });
    },
  };
  whenFinished(async () => {
    for (const connection of open) connection.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return proxy;
}

async function handle(
  proxy: FaultyProxy,
  target: URL,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const { method = '', url: path = '', headers } = incoming;
  const form = await readForm(incoming);
  const action = actionOf(incoming, form);
  const seen = { method, path, headers, at: performance.now(), action, question: form?.toString() };
  proxy.seen.push(seen);
  const fault = await proxy.fault(seen, proxy.seen.length);
  if (proxy.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, proxy.delayMs));
  switch (fault?.kind) {
    case 'reset':
      incoming.socket.resetAndDestroy();
      return;
    case 'silence':
      incoming.resume();
      return;
    case 'answer':
      incoming.resume();
      if (form === undefined) await new Promise((resolve) => incoming.once('end', resolve));
      outgoing.writeHead(fault.status, { ...fault.headers, ...proxy.answerHeaders }).end(fault.body);
      return;
    default:
      await forward(proxy, { target, form, fault }, incoming, outgoing);
  }
}

/** SNS takes forms, in which the action is a field; SQS takes JSON. */
async function readForm(incoming: IncomingMessage): Promise<Buffer | undefined> {
  if (!/^application\/x-(www-form-urlencoded|amz-json)/.test(incoming.headers['content-type'] ?? ''))
    return undefined;
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function actionOf({ headers }: IncomingMessage, form: Buffer | undefined): string | undefined {
  const target = /^AmazonSQS\.(\w+)$/.exec(String(headers['x-amz-target']))?.[1];
  return target ?? new URLSearchParams(form?.toString()).get('Action') ?? undefined;
}

async function forward(
  proxy: FaultyProxy,
  { target, form, fault }: { target: URL; form: Buffer | undefined; fault: Fault | undefined },
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const { method, url: path } = incoming;
  const headers = { ...incoming.headers };
  for (const name of proxy.droppedHeaders) delete headers[name];
  // The host header stays: it is signed, and services make addresses of it.
  const onward = request({ host: target.hostname, port: target.port, method, path, headers });
  if (form === undefined) incoming.pipe(onward);
  else onward.end(form);
  outgoing.once('close', () => onward.destroy());
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    onward.once('response', resolve);
    onward.once('error', reject);
  });
  if (fault?.kind === 'loseAnswer') {
    answer.resume();
    await new Promise((resolve) => answer.once('end', resolve));
    incoming.socket.resetAndDestroy();
    return;
  }
  outgoing.writeHead(answer.statusCode ?? 502, { ...answer.headers, ...proxy.answerHeaders });
  if (fault === undefined) {
    answer.pipe(outgoing);
    return;
  }
  outgoing.flushHeaders();
  await sendBody(await buffer(answer), incoming.socket, outgoing, fault);
}

async function sendBody(body: Buffer, socket: Socket, outgoing: ServerResponse, fault: Fault): Promise<void> {
  if (fault.kind === 'stall') return;
  if (fault.kind === 'cutAnswer') {
    outgoing.write(body.subarray(0, Math.floor(body.length / 2)), () => socket.resetAndDestroy());
    return;
  }
  const step = fault.kind === 'trickle' ? Math.max(1, Math.floor(fault.bytesPerSecond / 10)) : body.length;
  for (let sent = 0; sent < body.length && !outgoing.destroyed; sent += step) {
    outgoing.write(body.subarray(sent, sent + step));
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  outgoing.end();
}
