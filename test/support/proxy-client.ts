// What a gateway does to the node's proxy, byte by byte where bytes matter: requests, and upgrades with what follows them.
import { connect, type Socket } from 'node:net';
import { onTestFinished } from './after-test.ts';

const timeoutMs = 15_000;

export type RawAnswer = {
  status: number;
  /** First line and fields, as they came. */
  head: string;
  body: string;
};

/** Sends the bytes and reads until the other side closes, or for so long after the last of so many answers has begun. */
export function askRaw(port: number, bytes: string | Buffer, graceMs = 0, answers = 1): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    const chunks: Buffer[] = [];
    const end = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(Buffer.concat(chunks).toString('latin1'));
    };
    let timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`no end of the answer: ${Buffer.concat(chunks).toString('latin1').slice(0, 300)}`));
    }, timeoutMs);
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      if (graceMs === 0 || countAnswers(chunks) < answers) return;
      clearTimeout(timer);
      timer = setTimeout(end, graceMs);
    });
    // A reset after the answer is an end as well: what was sent on is not read any more.
    socket.on('error', () => {});
    socket.on('close', end);
    socket.write(bytes);
  });
}

function countAnswers(chunks: readonly Buffer[]): number {
  return Buffer.concat(chunks).toString('latin1').split('HTTP/1.1 ').length - 1;
}

export type ProxyRequest = { method?: string; headers?: readonly string[]; body?: string; version?: string };

/** One request with the target as it is written, on a connection of its own. */
export async function askProxy(port: number, target: string, request: ProxyRequest = {}): Promise<RawAnswer> {
  const { method = 'GET', headers = [], body = '', version = '1.1' } = request;
  const length = body === '' ? [] : [`Content-Length: ${body.length}`];
  const lines = [`${method} ${target} HTTP/${version}`, 'Host: gateway.test', 'Connection: close'];
  const text = await askRaw(port, `${[...lines, ...length, ...headers].join('\r\n')}\r\n\r\n${body}`);
  return parseAnswer(text);
}

export function parseAnswer(text: string): RawAnswer {
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const body = rest.join('\r\n\r\n');
  const isChunked = /^transfer-encoding: *chunked/im.test(head);
  return { status: Number(head.split(' ')[1] ?? 0), head, body: isChunked ? joinChunks(body) : body };
}

function joinChunks(text: string): string {
  let body = '';
  for (let at = 0; ; ) {
    const end = text.indexOf('\r\n', at);
    const size = Number.parseInt(text.slice(at, end), 16);
    if (end < 0 || !(size > 0)) return body;
    body += text.slice(end + 2, end + 2 + size);
    at = end + 2 + size + 2;
  }
}

export const upgradeFields: readonly string[] = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];

export type ProxyTunnel = {
  /** What comes back for it. Throws if nothing does, or if it was closed. */
  say(text: string): Promise<string>;
  isOpen(): boolean;
  close(): void;
};

/** A WebSocket as far as a proxy can tell. Throws with the first line of any other answer than 101. */
export function openTunnel(
  port: number,
  target: string,
  fields: readonly string[] = upgradeFields,
): Promise<ProxyTunnel> {
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.setNoDelay(true);
  const reader = readFrom(socket);
  socket.write(`${[`GET ${target} HTTP/1.1`, 'Host: gateway.test', ...fields].join('\r\n')}\r\n\r\n`);
  return reader
    .read((text) => text.includes('\r\n\r\n'))
    .then((head) => {
      if (!head.startsWith('HTTP/1.1 101 ')) throw new Error(head.split('\r\n')[0]);
      return {
        isOpen: () => !reader.isClosed(),
        close: () => socket.destroy(),
        say: (said) => {
          socket.write(said);
          return reader.read((text) => text.endsWith(said));
        },
      };
    });
}

function readFrom(socket: Socket): {
  read(isWhole: (text: string) => boolean): Promise<string>;
  isClosed(): boolean;
} {
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
  // A half-closed one is at its end, too.
  socket.on('end', () => socket.end());
  return {
    isClosed: () => closed,
    read: (isWhole) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`only ${JSON.stringify(text)} came`)), timeoutMs);
        notify = (): void => {
          const whole = isWhole(text);
          if (!closed && !whole) return;
          clearTimeout(timer);
          const taken = text;
          text = '';
          if (whole) resolve(taken);
          else reject(new Error(`it was closed after ${JSON.stringify(taken)}`));
        };
        notify();
      }),
  };
}
