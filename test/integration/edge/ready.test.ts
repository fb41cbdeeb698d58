// What Caddy is not told while HAProxy is not where Caddy would look for it.

import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { startBackend } from '../../support/backends.ts';
import { fetchOnceServed } from '../../support/caddy.ts';
import { startEdge, type TestEdge } from '../../support/edge.ts';
import { freePort } from '../../support/ports.ts';
import { makeTempDir } from '../../support/temp.ts';

/** As a person changes it in reeve.yaml and does no more. */
function configure(edge: TestEdge, change: Readonly<Record<string, unknown>>): void {
  const cluster = {
    nodeId: 'edge-1',
    role: 'edge',
    store: `file://${edge.storeDir}`,
    caddy: edge.caddy.settings,
    ...change,
  };
  writeFileSync(edge.environment['REEVE_CONFIG'] as string, JSON.stringify({ cluster }));
}

async function startServing(balancer: 'caddy' | 'haproxy'): Promise<TestEdge> {
  const edge = await startEdge({ balancer });
  const backend = await startBackend('one');
  edge.publish('app-1', [{ domain: 'a.example.com', hostPort: backend.port }]);
  await edge.tick();
  await fetchOnceServed(edge.caddy, 'a.example.com');
  return edge;
}

async function expectUntouched(edge: TestEdge, why: RegExp): Promise<void> {
  const pushes = (await edge.caddy.changes()).length;
  const { troubles } = await edge.tick(69);
  expect(troubles.find(({ subject }) => subject === 'caddy')?.message).toMatch(why);
  expect((await edge.caddy.changes()).length).toBe(pushes);
  expect((await edge.caddy.fetch('a.example.com', '/')).status).toBe(200);
}

it('leaves Caddy as it is where HAProxy was installed later and does not run', async () => {
  const edge = await startServing('caddy');
  const address = `127.0.0.1:${await freePort()}`;
  configure(edge, { balancer: 'haproxy', haproxy: { address, directory: edge.root } });
  await expectUntouched(
    edge,
    /HAProxy at "127\.0\.0\.1:\d+": nothing listens there: `reeve units render --write`/,
  );
});

it('leaves Caddy as it is where its address was changed and the socket has not moved yet', async () => {
  const edge = await startServing('haproxy');
  const address = `127.0.0.1:${await freePort()}`;
  configure(edge, { balancer: 'haproxy', haproxy: { address, directory: edge.haproxy?.directory } });
  await expectUntouched(edge, /nothing listens there/);
});

it('leaves Caddy as it is where something else has HAProxy’s address', async () => {
  const edge = await startServing('caddy');
  const other = createServer((_, response) => response.end('hello'));
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void other.close());
  const address = `127.0.0.1:${(other.address() as AddressInfo).port}`;
  configure(edge, { balancer: 'haproxy', haproxy: { address, directory: edge.root } });
  await expectUntouched(edge, /something else answers there/);
});

it('leaves Caddy as it is where what has HAProxy’s address hangs', async () => {
  const edge = await startServing('caddy');
  const silent = createTcpServer();
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void silent.close());
  const address = `127.0.0.1:${(silent.address() as AddressInfo).port}`;
  configure(edge, { balancer: 'haproxy', haproxy: { address, directory: edge.root } });
  await expectUntouched(edge, /no answer within 5s/);
});

it('says of an admin address that answers something else that it is not Caddy’s', async () => {
  const edge = await startServing('caddy');
  const other = createServer((_, response) => response.end('hello'));
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void other.close());
  const admin = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  configure(edge, { balancer: 'caddy', caddy: { ...edge.caddy.settings, admin } });
  const { troubles } = await edge.tick(69);
  expect(troubles).toMatchObject([
    { subject: 'caddy', message: expect.stringContaining('is not its admin API') },
  ]);
});

it('asks a Caddy for less that is older than the file it was started from', async () => {
  const bin = makeTempDir();
  writeFileSync(join(bin, 'caddy'), '#!/bin/sh\necho v2.8.4\n', { mode: 0o755 });
  const edge = await startEdge({ balancer: 'caddy', env: { PATH: `${bin}:${process.env['PATH']}` } });
  const backend = await startBackend('one');
  edge.publish('app-1', [{ domain: 'a.example.com', hostPort: backend.port }]);
  const { troubles } = await edge.tick(1);
  expect(troubles).toMatchObject([
    { subject: 'caddy', message: expect.stringContaining('stream_close_delay') },
  ]);
  expect(await edge.tick()).toMatchObject({ actions: [{ action: 'push' }], troubles: [] });
  expect((await fetchOnceServed(edge.caddy, 'a.example.com')).status).toBe(200);
  expect(await edge.tick()).toMatchObject({ outcome: 'nothing-to-do' });
});
