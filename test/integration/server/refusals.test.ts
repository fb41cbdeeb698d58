// Callers that are refused, and the next good one that is served all the same.
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type ApiNode, callApi, makeApiNode, placeCertificate } from '../../support/api-node.ts';
import type { SocketHolder } from '../../support/socket-holder.ts';

const idleSeconds = 5;

async function serving(http = {}): Promise<{ node: ApiNode; holder: SocketHolder }> {
  const node = makeApiNode({ http: { ...http } });
  const holder = await node.hold(idleSeconds);
  await expectGood(node, holder);
  return { node, holder };
}

async function expectGood(node: ApiNode, holder: SocketHolder): Promise<void> {
  const { status, text } = await callApi(holder.port, node.pki);
  expect([status, text]).toEqual([200, '{"status":"ok"}']);
}

describe('the API refuses', () => {
  it('TLS below 1.3 (P25)', async () => {
    const { node, holder } = await serving();
    const options = { maxVersion: 'TLSv1.2' as const };
    await expect(callApi(holder.port, node.pki, { options })).rejects.toThrow(/protocol version/i);
    await expectGood(node, holder);
  });

  it('a caller without a certificate, on every route (P26)', async () => {
    const { node, holder } = await serving();
    for (const path of ['/health', '/v1/run/start', '/v1/run/stop']) {
      const call = callApi(holder.port, node.pki, { as: 'none', path });
      await expect(call).rejects.toThrow(/certificate required|socket hang up|ECONNRESET/i);
    }
    await expectGood(node, holder);
  });

  it('a certificate of another authority (P27)', async () => {
    const { node, holder } = await serving();
    const call = callApi(holder.port, node.pki, { as: node.pki.foreign.node });
    await expect(call).rejects.toThrow();
    await expectGood(node, holder);
  });

  it('a certificate that has expired (P27)', async () => {
    const { node, holder } = await serving();
    await expect(callApi(holder.port, node.pki, { as: node.pki.expired() })).rejects.toThrow();
    await expectGood(node, holder);
  });

  it('a caller without TLS', async () => {
    const { node, holder } = await serving();
    await expect(callApi(holder.port, undefined)).rejects.toThrow();
    await expectGood(node, holder);
  });
});

/** Connections that say nothing, or this. */
async function openIdle(port: number, count: number, words = ''): Promise<Socket[]> {
  const sockets = await Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<Socket>((resolve, reject) => {
          const socket = connect({ host: '127.0.0.1', port }, () => {
            if (words !== '') socket.write(words);
            resolve(socket);
          });
          socket.once('error', reject);
        }),
    ),
  );
  for (const socket of sockets) socket.on('error', () => {});
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  return sockets;
}

describe('the API serves the next good caller', () => {
  it('beside 200 connections that never finish their handshake, which it ends', async () => {
    const { node, holder } = await serving();
    const sockets = await openIdle(holder.port, 200);
    const startedAt = performance.now();
    await expectGood(node, holder);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    await Promise.all(
      sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve).resume())),
    );
    expect(performance.now() - startedAt).toBeLessThan(40_000);
    await expectGood(node, holder);
  });

  it('beside more connections than it keeps open, of which the oldest go', async () => {
    const { node, holder } = await serving();
    const sockets = await openIdle(holder.port, 600);
    await expectGood(node, holder);
    const closed = (): number => sockets.filter((socket) => socket.closed || socket.destroyed).length;
    for (const socket of sockets) socket.resume();
    await expect.poll(closed, { timeout: 30_000 }).toBeGreaterThanOrEqual(88);
    await expectGood(node, holder);
  });

  it('beside one that sends its headers ever so slowly, which it ends after ten seconds', async () => {
    const { node, holder } = await serving();
    const { ended, startedAt } = await dripHeaders(node, holder.port);
    await expectGood(node, holder);
    expect(await ended).toMatch(/^$|^HTTP\/1\.1 408/);
    expect(performance.now() - startedAt).toBeGreaterThan(8_000);
    // A whole request has thirty.
    expect(performance.now() - startedAt).toBeLessThan(22_000);
    await expectGood(node, holder);
  });

  it('beside one whose body does not come within read_timeout (P9)', async () => {
    const { node, holder } = await serving({ read_timeout: '1s' });
    const startedAt = performance.now();
    const head =
      'POST /v1/run/start HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{';
    expect(await speak(node, holder.port, head)).toMatch(/^$|^HTTP\/1\.1 408/);
    expect(performance.now() - startedAt).toBeLessThan(15_000);
    await expectGood(node, holder);
  });

  it('after one that sends 20 MiB, of which it reads no more than its cap', async () => {
    const { node, holder } = await serving();
    const body = Buffer.alloc(20 << 20, 0x20);
    const call = { method: 'POST', path: '/v1/run/start', body };
    const { status, headers } = await callApi(holder.port, node.pki, call);
    expect([status, headers['connection']]).toEqual([413, 'close']);
    await expectGood(node, holder);
  });

  it('after one that does not say how long its 20 MiB are', async () => {
    const { node, holder } = await serving();
    const body = Buffer.alloc(20 << 20, 0x20);
    const options = { headers: { 'transfer-encoding': 'chunked' } };
    const call = { method: 'POST', path: '/v1/run/start', body, options };
    expect((await callApi(holder.port, node.pki, call)).status).toBe(413);
    await expectGood(node, holder);
  });

  it('on a kept connection, which idle_timeout ends (P11)', async () => {
    const { node, holder } = await serving({ idle_timeout: '1s' });
    const startedAt = performance.now();
    const request = 'GET /health HTTP/1.1\r\nhost: x\r\n\r\n';
    expect(await speak(node, holder.port, request)).toMatch(/"status":"ok"/);
    const tookMs = performance.now() - startedAt;
    expect(tookMs).toBeGreaterThan(900);
    expect(tookMs).toBeLessThan(40_000);
  });
});

describe('the API follows its files', () => {
  it('takes a renewed certificate into force without a restart', async () => {
    const { node, holder } = await serving();
    const before = await serialOf(node, holder.port);
    placeCertificate(node.files, node.pki.issueServer());
    expect(await serialOf(node, holder.port)).not.toBe(before);
    await expectGood(node, holder);
    expect(holder.starts()).toBe(1);
  });

  it('keeps the old one while only half of the new one is there', async () => {
    const { node, holder } = await serving();
    const before = await serialOf(node, holder.port);
    const next = node.pki.issueServer();
    placeCertificate({ cert: node.files.cert, key: `${node.files.key}.new` }, next);
    expect(await serialOf(node, holder.port)).toBe(before);
    placeCertificate(node.files, next);
    expect(await serialOf(node, holder.port)).not.toBe(before);
    expect(holder.starts()).toBe(1);
  });
});

function identity(node: ApiNode) {
  return {
    host: '127.0.0.1',
    ca: readFileSync(node.pki.ca.cert),
    cert: readFileSync(node.pki.node.cert),
    key: readFileSync(node.pki.node.key),
  };
}

/** Says this and waits for the end of the connection: all that came. */
function speak(node: ApiNode, port: number, words: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connectTls({ ...identity(node), port }, () => socket.write(words));
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    socket.on('error', () => {});
    socket.once('close', () => resolve(text));
  });
}

async function dripHeaders(
  node: ApiNode,
  port: number,
): Promise<{ ended: Promise<string>; startedAt: number }> {
  const startedAt = performance.now();
  const socket = await new Promise<ReturnType<typeof connectTls>>((resolve) => {
    const opened = connectTls({ ...identity(node), port }, () => resolve(opened));
  });
  socket.write('GET /health HTTP/1.1\r\n');
  const drip = setInterval(() => socket.write('x-slow: 1\r\n'), 500);
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  socket.on('error', () => {});
  const ended = new Promise<string>((resolve) => {
    socket.once('close', () => {
      clearInterval(drip);
      resolve(text);
    });
  });
  return { ended, startedAt };
}

function serialOf(node: ApiNode, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ ...identity(node), port }, () => {
      resolve(socket.getPeerCertificate().serialNumber);
      socket.destroy();
    });
    socket.once('error', reject);
  });
}
