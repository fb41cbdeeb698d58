// What HAProxy makes of servers that fail: probes, passive eviction, retries.
import { describe, expect, it } from 'vitest';
import { startBackendServer } from '../../support/backend-servers.ts';
import { routeTo, startBalanced, until } from '../../support/balanced.ts';
import { askBalancer } from '../../support/balancer-client.ts';

/** Everything that ends a quotation, starts a comment, or stands for a value in HAProxy's file. */
const oddPath = `/h"e#a\\l$t{h}'%20%[src]%HOME\${HOME};|~'x'`;

describe('active probes', () => {
  it('take out a server that fails them, and bring it back (L105)', async () => {
    const [first, second] = [await startBackendServer('first'), await startBackendServer('second')];
    const { haproxy } = await startBalanced([routeTo('a.test', [first, second], '/health')]);
    const servers = async (): Promise<string> => {
      const answers = [];
      for (let count = 0; count < 6; count += 1) answers.push(await askBalancer(haproxy.address, 'a.test'));
      return [...new Set(answers.map(({ body, status }) => `${status} ${body}`))].sort().join();
    };
    expect(await servers()).toBe('200 first,200 second');

    first.statusOf['/health'] = 302;
    await until(async () => (await servers()) === '200 second');
    first.statusOf['/health'] = 204;
    await until(async () => (await servers()) === '200 first,200 second');
  });

  it('ask for the path byte for byte, under the name, or a wildcard by the address', async () => {
    const [plain, wild] = [
      await startBackendServer('plain'),
      await startBackendServer('wild', { host: '::1' }),
    ];
    const four = await startBackendServer('four');
    await startBalanced([routeTo('a.test', [plain], oddPath), routeTo('*.w.test', [wild, four], oddPath)]);

    const servers = [plain, wild, four];
    await until(() => servers.every(({ requests }) => requests.length > 0));

    expect(servers.map(({ requests }) => requests[0])).toEqual([
      `GET ${oddPath} a.test`,
      `GET ${oddPath} [::1]:${wild.backend.port}`,
      `GET ${oddPath} 127.0.0.1:${four.backend.port}`,
    ]);
  });
});

describe('passive eviction', () => {
  it('takes a server out after one error, and tries it again later (L104)', async () => {
    const [first, second] = [await startBackendServer('first'), await startBackendServer('second')];
    const { haproxy } = await startBalanced([routeTo('a.test', [first, second])]);
    first.status = 500;
    const statuses: number[] = [];
    const startedAt = performance.now();
    for (let count = 0; count < 40; count += 1) {
      statuses.push((await askBalancer(haproxy.address, 'a.test')).status);
    }
    const evictedAt = performance.now();
    first.status = 200;
    await until(async () => (await askBalancer(haproxy.address, 'a.test')).body === 'first');

    // One more for each check that is due anyway and has come in between: of those there is one in five seconds.
    const checks = 1 + Math.floor((evictedAt - startedAt) / 5_000);
    expect(statuses.filter((status) => status !== 200).slice(1)).not.toContain(503);
    expect(statuses.filter((status) => status === 500).length).toBeLessThanOrEqual(1 + checks);
    expect(statuses).toContain(500);
    const seconds = Math.round((performance.now() - evictedAt) / 100) / 10;
    console.log(`a server that has answered 500 is back after ${seconds} s`);
  });

  it('passes on an error that is the client’s and keeps the server', async () => {
    const only = await startBackendServer('only');
    const { haproxy } = await startBalanced([routeTo('a.test', [only])]);
    only.status = 404;
    expect(await askBalancer(haproxy.address, 'a.test')).toEqual({ status: 404, body: 'only' });
    only.status = 200;
    expect(await askBalancer(haproxy.address, 'a.test')).toEqual({ status: 200, body: 'only' });
  });
});

describe('retries', () => {
  it.each(['GET', 'POST'])(
    'send a %s to another server where one refuses the connection (L103)',
    async (method) => {
      const [dead, alive] = [await startBackendServer('dead'), await startBackendServer('alive')];
      const { haproxy, balancer } = await startBalanced([routeTo('a.test', [alive])]);
      await dead.stop();
      await balancer.apply([routeTo('a.test', [dead, alive])]);

      const answers = [];
      for (let count = 0; count < 10; count += 1) {
        answers.push(await askBalancer(haproxy.address, 'a.test', { method }));
      }

      expect(answers.filter(({ body }) => body !== 'alive')).toEqual([]);
    },
  );

  it('send a GET again that found no answer, and never a POST', async () => {
    const [cut, whole] = [await startBackendServer('cut'), await startBackendServer('whole')];
    const both = [routeTo('a.test', [cut, whole])];
    const ask = async (method: string): Promise<string[]> => {
      const { haproxy } = await startBalanced(both);
      const asked = [cut.requests.length, whole.requests.length];
      const answers = [];
      for (let count = 0; count < 2; count += 1) {
        answers.push(await askBalancer(haproxy.address, 'a.test', { method }));
      }
      const heard = [cut, whole].map(({ requests }, index) => requests.length - (asked[index] ?? 0));
      return [...answers.map(({ status }) => String(status)).sort(), heard.join()];
    };
    cut.status = 'cut';

    // Which of the two is asked again is for the balancer to say: in the end it is the one that answers.
    expect(await ask('GET')).toEqual(['200', '200', expect.stringMatching(/^[12],2$/)]);
    expect(await ask('POST')).toEqual(['200', '502', '1,1']);
  });
});

describe('what passes through', () => {
  it('is what Caddy has sent, without the name of the route', async () => {
    const only = await startBackendServer('only');
    const { haproxy } = await startBalanced([routeTo('*.a.test', [only])]);
    const headers = {
      'x-forwarded-for': '203.0.113.7',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'one.a.test',
    };

    const path = '/a//b/../%2f?c=d&e';
    expect(await askBalancer(haproxy.address, '_.a.test', { path, headers })).toEqual({
      status: 200,
      body: 'only',
    });

    expect(only.requests).toEqual([`GET ${path} client.test`]);
    expect(only.headers[0]).toEqual(
      [
        ['host', 'client.test'],
        ['x-forwarded-for', '203.0.113.7'],
        ['x-forwarded-proto', 'https'],
        ['x-forwarded-host', 'one.a.test'],
        ['connection', 'close'],
      ].flat(),
    );
  });

  it('is nothing for a route that is not there', async () => {
    const only = await startBackendServer('only');
    const { haproxy } = await startBalanced([routeTo('a.test', [only]), routeTo('empty.test', [])]);
    const answers = [];
    for (const route of ['b.test', '_none', 'A.test', ''])
      answers.push(await askBalancer(haproxy.address, route));
    const empty = await askBalancer(haproxy.address, 'empty.test');

    expect(answers).toEqual(answers.map(() => ({ status: 503, body: 'no such route' })));
    expect(empty.status).toBe(503);
    expect(only.requests).toEqual([]);
  });
});
