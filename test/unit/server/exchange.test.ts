import { Agent, createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { createBodyRoom } from '../../../src/lib/server/body.ts';
import { exchange } from '../../../src/lib/server/exchange.ts';
import type { Answer, Route } from '../../../src/lib/server/route.ts';
import { systemClock } from '../../../src/lib/time.ts';

const writeMs = 100;
const bodyBytes = 100_000;

/** Lets the requests to `/keeps` end. */
const kept: (() => void)[] = [];
const endKept = (): void => {
  for (const end of kept.splice(0)) end();
};

const routes: Route[] = [
  {
    method: 'GET',
    path: '/waits',
    handle: ({ signal }) =>
      new Promise<Answer>((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      ),
  },
  {
    method: 'GET',
    path: '/slow',
    handle: async () => {
      await systemClock.sleep(writeMs * 0.8, new AbortController().signal);
      return { status: 200, json: {} };
    },
  },
  {
    method: 'POST',
    path: '/keeps',
    handle: async ({ body }) => {
      await body();
      return await new Promise<Answer>((resolve) => kept.push(() => resolve({ status: 200, json: {} })));
    },
  },
];

async function startServer(answerMs = writeMs): Promise<number> {
  const log = { error: () => {} } as unknown as Parameters<typeof exchange>[0]['log'];
  const stopping = new AbortController().signal;
  const room = createBodyRoom(2 * bodyBytes);
  const server = createServer((req, res) => {
    void exchange({ log }, { req, res }, { routes, bodyBytes, room, writeMs: answerMs, stopping });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

function ask(agent: Agent, url: string): Promise<{ status: number; connection: string | undefined }> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent }, (response: IncomingMessage) => {
      response.resume();
      const { statusCode: status = 0, headers } = response;
      response.once('end', () => resolve({ status, connection: headers.connection }));
    });
    request.once('error', reject);
  });
}

it('an answer that came too late is the last of its connection (P9)', async () => {
  const port = await startServer();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  expect(await ask(agent, `http://127.0.0.1:${port}/waits`)).toEqual({ status: 408, connection: 'close' });
  // What ends a connection whose caller does not read must not end the next one of this caller.
  const until = performance.now() + 1_500;
  while (performance.now() < until) {
    expect((await ask(agent, `http://127.0.0.1:${port}/slow`)).status).toBe(200);
    await sleep(1);
  }
});

it('bodies are bounded together, and room comes back with the end of a request', async () => {
  const port = await startServer(60_000);
  const statuses: number[] = [];
  const post = async (): Promise<void> => {
    const body = 'x'.repeat(bodyBytes * 0.9);
    statuses.push((await fetch(`http://127.0.0.1:${port}/keeps`, { method: 'POST', body })).status);
  };
  const look = () => [statuses.toSorted(), kept.length];
  const all = Array.from({ length: 10 }, post);
  const refused = Array.from({ length: 8 }, () => 503);
  await expect.poll(look, { timeout: 10_000 }).toEqual([refused, 2]);
  endKept();
  await Promise.all(all);
  expect(look()).toEqual([[200, 200, ...refused], 0]);
  const again = [post(), post()];
  await expect.poll(() => kept.length, { timeout: 10_000 }).toBe(2);
  endKept();
  await Promise.all(again);
  expect(statuses.filter((status) => status === 200)).toHaveLength(4);
});
