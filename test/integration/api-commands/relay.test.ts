// `/v1/metrics` against instances that behave, and that do not: real servers on the loopback.
import { createServer } from 'node:net';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { serveInstances, startInstance } from '../../support/agenda/instance-api.ts';
import { freePort } from '../../support/ports.ts';

const mib = 1 << 20;
const path = (port: number, more = ''): string => `/v1/metrics/app/default?port=${port}${more}`;
const errorOf = ({ text }: { text: string }): string => (JSON.parse(text) as { error: string }).error;

describe('the metrics relay', () => {
  it('A15: gives the instance’s answer byte for byte, with its type', async () => {
    const api = await serveInstances();
    const body = Buffer.from('# HELP a b\na{x="\xff\0"} 1\r\n# EOF\n', 'latin1');
    const type = 'application/openmetrics-text; version=1.0.0; charset=utf-8';
    const instance = await startInstance((_, response) =>
      response.writeHead(200, { 'content-type': type, 'x-own': 'no' }).end(body),
    );
    const answer = await api.call(path(instance.port));
    expect([answer.status, answer.headers['content-type'], answer.headers['x-own']]).toEqual([
      200,
      type,
      undefined,
    ]);
    expect(answer.headers['content-length']).toBe(String(body.length));
    expect(instance.asked.map(({ line }) => line)).toEqual(['GET /metrics HTTP/1.1']);
    expect(instance.asked[0]?.headers).toMatchObject({ host: `127.0.0.1:${instance.port}` });
    expect(JSON.stringify(instance.asked[0]?.headers)).not.toContain('token');
  });

  it('asks for the path as it stands there, of whatever app and instance', async () => {
    const api = await serveInstances();
    const instance = await startInstance((_, response) => response.end('ok'));
    const paths = ['/a/../b?c=d&e=%2F', '//x', '/a b#c'];
    for (const one of paths) {
      expect((await api.call(path(instance.port, `&path=${encodeURIComponent(one)}`))).status).toBe(200);
    }
    const odd = `/v1/metrics/..%2F..%2Fetc/%00?port=${instance.port}`;
    expect((await api.call(odd)).headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(instance.asked.map(({ line }) => line.split(' ')[1])).toEqual([
      '/a/../b?c=d&e=%2F',
      '//x',
      '/a%20b',
      '/metrics',
    ]);
  });

  it.each(['127.0.0.2', '::1', 'localhost'])('A15: asks at the backend host, %s', async (host) => {
    const api = await serveInstances({ proxyBackendHost: host });
    const instance = await startInstance((_, response) => response.end('ok'), { host });
    expect(await api.call(path(instance.port))).toMatchObject({ status: 200, text: 'ok' });
  });

  it.each([
    [2 * mib, 200],
    [2 * mib + 1, 502],
  ])('of %i bytes is answered with %i, with and without a length told before', async (size, status) => {
    const api = await serveInstances();
    for (const tells of [true, false]) {
      const instance = await startInstance((_, response) => {
        if (tells) response.setHeader('content-length', size);
        else response.write('');
        response.end(Buffer.alloc(size, 'x'));
      });
      const answer = await api.call(path(instance.port));
      expect([answer.status, answer.text.length]).toEqual([
        status,
        status === 200 ? size : expect.any(Number),
      ]);
      if (status === 502) expect(errorOf(answer)).toMatch(/its answer is larger than 2097152 bytes$/);
    }
  });

  it.each([204, 302, 404, 500, 503])('answers 502 where the instance answers %i', async (status) => {
    const api = await serveInstances();
    const instance = await startInstance((_, response) => response.writeHead(status).end());
    const answer = await api.call(path(instance.port));
    expect([answer.status, errorOf(answer)]).toEqual([502, `the metrics are answered with ${status}`]);
  });

  it('follows a redirection to the same port, and none to another', async () => {
    const api = await serveInstances();
    const other = await startInstance((_, response) => response.end('of another'));
    const targets: Record<string, string> = {
      '/metrics': '/metrics/?a=b',
      '/out': `http://127.0.0.1:${other.port}/metrics`,
      '/loop': '/loop',
    };
    const instance = await startInstance(({ url = '' }, response) => {
      const location = targets[url];
      if (location === undefined) response.end(`at ${url}`);
      else response.writeHead(301, { location }).end();
    });
    expect(await api.call(path(instance.port))).toMatchObject({ status: 200, text: 'at /metrics/?a=b' });
    for (const one of ['/out', '/loop']) {
      const answer = await api.call(path(instance.port, `&path=${one}`));
      expect([answer.status, errorOf(answer)]).toEqual([502, 'the metrics are answered with 301']);
    }
    expect(other.asked).toEqual([]);
    expect(instance.asked.filter(({ line }) => line.includes('/loop'))).toHaveLength(11);
  });

  it('does not pass on an encoding that nobody asked for', async () => {
    const api = await serveInstances();
    const instance = await startInstance((_, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('a 1\n')),
    );
    const answer = await api.call(path(instance.port));
    expect([answer.status, errorOf(answer)]).toEqual([
      502,
      'the metrics are in gzip, which was not asked for',
    ]);
    expect(instance.asked[0]?.headers).toMatchObject({ 'accept-encoding': 'identity' });
  });

  it('answers 502 where nobody listens, where the answer breaks off, and where it is none', async () => {
    const api = await serveInstances();
    const port = await freePort();
    expect(errorOf(await api.call(path(port)))).toBe(
      `cannot reach http://127.0.0.1:${port}: connection refused`,
    );
    const cut = await startInstance((_, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('half');
      setTimeout(() => response.destroy(), 50);
    });
    const switches = await startInstance(({ socket }) =>
      socket.end('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
    );
    const talker = createServer((socket) => socket.end('220 smtp.example ESMTP\r\n')).listen(0, '127.0.0.1');
    await new Promise((resolve) => talker.once('listening', resolve));
    onTestFinished(() => void talker.close());
    const talks = talker.address() as { port: number };
    for (const one of [cut.port, switches.port, talks.port]) {
      const answer = await api.call(path(one));
      expect([answer.status, errorOf(answer)]).toEqual([502, expect.stringMatching(/^cannot reach http:/)]);
    }
  });

  it('answers 502 after five seconds, whether nothing comes or a little all the time', async () => {
    const api = await serveInstances();
    const silent = await startInstance(() => {});
    const slow = await startInstance((_, response) => {
      const timer = setInterval(() => response.write('a'), 100);
      response.once('close', () => clearInterval(timer));
    });
    const startedMs = performance.now();
    const answers = await Promise.all([silent, slow].map(({ port }) => api.call(path(port))));
    const tookMs = performance.now() - startedMs;
    for (const [index, answer] of answers.entries()) {
      const origin = `http://127.0.0.1:${[silent, slow][index]?.port}`;
      const error = `cannot reach ${origin}: no answer within 5000 ms`;
      expect([answer.status, errorOf(answer)]).toEqual([502, error]);
    }
    expect([tookMs >= 4_990, tookMs < 20_000]).toEqual([true, true]);
  });

  it('leaves the instance where its caller leaves, and serves the next one', async () => {
    const api = await serveInstances();
    let gone = 0;
    const instance = await startInstance(({ url }, response) => {
      if (url === '/now') return void response.end('ok');
      response.once('close', () => {
        gone += 1;
      });
    });
    const controllers = Array.from({ length: 40 }, () => new AbortController());
    const calls = controllers.map(({ signal }) => api.call(path(instance.port), { signal }).catch(() => {}));
    await expect.poll(() => instance.asked.length).toBe(32);
    for (const controller of controllers) controller.abort();
    await Promise.all(calls);
    await expect.poll(() => gone).toBe(32);
    expect((await api.call(path(instance.port, '&path=/now'))).text).toBe('ok');
    expect(instance.asked.length, 'of those that waited none is asked for').toBe(33);
  });

  it.each([
    ['', 'port must be a port, from 1 to 65535'],
    ['?port=0', 'port must be a port, from 1 to 65535'],
    ['?port=80&path=metrics', 'path must start with /'],
    ['?port=80&scheme=gopher', 'scheme must be http or https'],
    ['?port=80&path=/%0d%0aHost:%20x', 'path must have no control characters'],
  ])('answers 400 to %j', async (query, error) => {
    const api = await serveInstances();
    const answer = await api.call(`/v1/metrics/app/default${query}`);
    expect([answer.status, answer.text]).toEqual([400, JSON.stringify({ error })]);
  });
});
