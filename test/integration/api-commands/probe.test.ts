// `/v1/probe` against instances that behave, and that do not: real servers on the loopback.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ProbeAnswer } from '../../../src/lib/agenda/instances.ts';
import { type InstanceApi, serveInstances, startInstance } from '../../support/agenda/instance-api.ts';
import { createPki } from '../../support/ploy/pki.ts';
import { freePort } from '../../support/ports.ts';
import { makeTempDir } from '../../support/temp.ts';

const path = (port: number, more = ''): string => `/v1/probe/app/default?port=${port}${more}`;

async function probe(api: InstanceApi, port: number, more = ''): Promise<ProbeAnswer> {
  const answer = await api.call(path(port, more));
  expect([answer.status, answer.headers['content-type']]).toEqual([200, 'application/json']);
  return JSON.parse(answer.text) as ProbeAnswer;
}

describe('a probe', () => {
  it.each([200, 204, 301, 401, 404, 418, 500, 503])('tells a status of %i as it is', async (status) => {
    const api = await serveInstances();
    const instance = await startInstance((_, response) => response.writeHead(status).end());
    expect(await probe(api, instance.port)).toEqual({ http_status: status, latency_ms: expect.any(Number) });
    expect(instance.asked.map(({ line }) => line)).toEqual(['GET / HTTP/1.1']);
  });

  it.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('asks with %s', async (method) => {
    const api = await serveInstances();
    const instance = await startInstance((_, response) => response.end('hello'));
    const more = `&method=${method.toLowerCase()}&path=${encodeURIComponent('/healthz?deep=1')}`;
    expect(await probe(api, instance.port, more)).toMatchObject({ http_status: 200 });
    expect(instance.asked.map(({ line }) => line)).toEqual([`${method} /healthz?deep=1 HTTP/1.1`]);
  });

  it('measures how long the instance takes, and not how long its body does', async () => {
    const api = await serveInstances();
    const instance = await startInstance((_, response) => {
      setTimeout(() => response.writeHead(200).write('and so on'), 300);
    });
    const startedMs = performance.now();
    const { latency_ms: latencyMs } = await probe(api, instance.port, '&timeout_ms=30000');
    expect([latencyMs >= 295, latencyMs < 10_000, Number.isInteger(latencyMs)]).toEqual([true, true, true]);
    expect(performance.now() - startedMs).toBeLessThan(12_000);
  });

  it('reads a body of some size to its end, and leaves one that has none', async () => {
    const api = await serveInstances();
    let broken = 0;
    const polite = await startInstance((_, response) => {
      response.once('close', () => {
        if (!response.writableFinished) broken += 1;
      });
      response.end('x'.repeat(4_000));
    });
    for (let count = 0; count < 20; count += 1) await probe(api, polite.port);
    expect(broken).toBe(0);
    const endless = await startInstance((_, response) => {
      const timer = setInterval(() => response.write('x'.repeat(65_536)), 5);
      response.once('close', () => clearInterval(timer));
    });
    expect(await probe(api, endless.port)).toMatchObject({ http_status: 200 });
  });

  it.each([
    ['&timeout_ms=300', 300],
    ['', 5_000],
  ])('with %j ends after %i ms of silence, and says so', async (more, wantedMs) => {
    const api = await serveInstances();
    const instance = await startInstance(() => {});
    const answer = await probe(api, instance.port, more);
    expect(answer).toEqual({
      http_status: 0,
      latency_ms: expect.any(Number),
      error: `cannot reach http://127.0.0.1:${instance.port}: no answer within ${wantedMs} ms`,
    });
    expect(answer.latency_ms).toBeGreaterThanOrEqual(wantedMs - 10);
    expect(answer.latency_ms).toBeLessThan(3 * wantedMs + 3_000);
  });

  it('tells of an instance that refuses, breaks off or speaks something else', async () => {
    const api = await serveInstances();
    const port = await freePort();
    expect(await probe(api, port)).toEqual({
      http_status: 0,
      latency_ms: expect.any(Number),
      error: `cannot reach http://127.0.0.1:${port}: connection refused`,
    });
    const breaks = await startInstance(({ socket }) => socket.destroy());
    const talker = createServer((socket) => socket.end('+OK POP3\r\n')).listen(0, '127.0.0.1');
    await new Promise((resolve) => talker.once('listening', resolve));
    onTestFinished(() => void talker.close());
    for (const one of [breaks.port, (talker.address() as { port: number }).port]) {
      expect(await probe(api, one)).toMatchObject({ http_status: 0, error: expect.any(String) });
    }
  });

  it('by https of an instance that speaks plain HTTP says so', async () => {
    const api = await serveInstances();
    const instance = await startInstance((_, response) => response.end());
    expect(await probe(api, instance.port, '&scheme=https')).toMatchObject({
      http_status: 0,
      error: `cannot reach https://127.0.0.1:${instance.port}: the server does not speak TLS on this port: is it http there, not https?`,
    });
  });

  it('trusts certificates as the system does', async () => {
    const api = await serveInstances();
    const { server } = createPki(makeTempDir());
    const tls = { cert: readFileSync(server.cert, 'utf8'), key: readFileSync(server.key, 'utf8') };
    const instance = await startInstance((_, response) => response.end(), { tls });
    expect(await probe(api, instance.port, '&scheme=https')).toMatchObject({
      http_status: 0,
      error: expect.stringMatching(/^cannot reach https:.* is of another authority than the system's/),
    });
  });

  it('follows a redirection to the same port, as a health check behind a login has it', async () => {
    const api = await serveInstances();
    const instance = await startInstance(({ url }, response) => {
      if (url === '/') response.writeHead(302, { location: '/login' }).end();
      else response.end('login');
    });
    expect(await probe(api, instance.port)).toMatchObject({ http_status: 200 });
    expect(await probe(api, instance.port, '&method=POST')).toMatchObject({ http_status: 302 });
  });

  it.each(['', '?port=70000', '?port=80&path=x', '?port=80&method=CONNECT', '?port=80&scheme=ws'])(
    'answers 400 to %j',
    async (query) => {
      const api = await serveInstances();
      const answer = await api.call(`/v1/probe/app/default${query}`);
      expect([answer.status, Object.keys(JSON.parse(answer.text) as object)]).toEqual([400, ['error']]);
    },
  );

  it('is answered 503 where the node is stopped meanwhile', async () => {
    const api = await serveInstances();
    const instance = await startInstance(() => {});
    const call = api.call(path(instance.port));
    await expect.poll(() => instance.asked.length).toBe(1);
    await api.served.stop();
    expect(await call).toMatchObject({ status: 503, text: '{"error":"the node is being stopped"}' });
    expect(api.served.lines.filter((line) => line.startsWith('error'))).toEqual([]);
  });
});
