// What a health check may be answered with, by a server that says exactly that.
import { createServer, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { probe } from '../../../src/lib/reconcile/probe.ts';

const ok = 'HTTP/1.1 200 OK\r\n';

it.each([
  ['an answer without a body', 'HTTP/1.1 204 No Content\r\n\r\n', true, 'got 204'],
  ['an answer that ends with the connection', `${ok}\r\nok`, true, 'got 200'],
  [
    'an interim answer before the real one',
    `HTTP/1.1 103 Early Hints\r\n\r\n${ok}Content-Length: 0\r\n\r\n`,
    true,
    'got 200',
  ],
  [
    'more than anybody wants to read',
    `${ok}Content-Length: 9999\r\n\r\n${'a'.repeat(9000)}`,
    true,
    'got 200',
  ],
  [
    'an answer that is cut off',
    `${ok}Content-Length: 9\r\n\r\nabc`,
    false,
    'got 200, and the answer was cut off',
  ],
  ['a redirect (R17)', 'HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n', false, 'got 302'],
  [
    'an error with its reason',
    'HTTP/1.1 500 Oops\r\nContent-Length: 6\r\n\r\nno  db',
    false,
    'got 500: no db',
  ],
  [
    'another protocol',
    'HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
    false,
    'got 101',
  ],
  ['nothing', '', false, 'socket hang up'],
])('takes %s for what it is', async (_, answer, passed, said) => {
  const url = await serve((socket) => socket.end(answer));
  expect(await probe(url, 10_000, new AbortController().signal)).toEqual({ passed, said });
});

it.each([
  ['never comes', ''],
  ['never ends', `${ok}Content-Length: 9\r\n\r\nabc`],
])('does not wait for an answer that %s', async (_, start) => {
  const url = await serve((socket) => socket.write(start));
  const answer = await probe(url, 50, new AbortController().signal);
  expect(answer).toEqual({ passed: false, said: 'no answer in 50ms' });
});

async function serve(answer: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => answer(socket));
  });
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/healthz`;
}
