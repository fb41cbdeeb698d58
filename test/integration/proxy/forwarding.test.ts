// What the proxy passes on and what it answers by itself: every status of the wire, and the request as the instance gets it.
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { removeInstance } from '../../../src/lib/proxy/set.ts';
import { countTunnels } from '../../../src/lib/proxy/tunnels.ts';
import { startBackendServer } from '../../support/backend-servers.ts';
import { until } from '../../support/balanced.ts';
import { freePort } from '../../support/ports.ts';
import { startProxy } from '../../support/proxy.ts';
import { askProxy, askRaw, openTunnel, parseAnswer, upgradeFields } from '../../support/proxy-client.ts';
import { startRawBackend } from '../../support/raw-backend.ts';

describe('a plain request', () => {
  it('goes to the port that the instance has now, at the same address (A2, A56, A57, A58, A75)', async () => {
    const [first, second] = [await startBackendServer('first'), await startBackendServer('second')];
    const proxy = await startProxy();
    await proxy.set('blog', first.backend.port);
    const before = await askProxy(proxy.port, '/i/blog/x?y=1');
    await proxy.set('blog', second.backend.port);
    const after = await askProxy(proxy.port, '/i/blog/x?y=1');
    expect([before, after].map(({ status, body }) => [status, body.trim()])).toEqual([
      [200, 'first'],
      [200, 'second'],
    ]);
    expect([...first.requests, ...second.requests]).toEqual([
      'GET /x?y=1 gateway.test',
      'GET /x?y=1 gateway.test',
    ]);
  });

  it('has its prefix taken off, and not a byte of the rest changed (A56)', async () => {
    const proxy = await startProxy();
    const instance = await startRawBackend();
    await proxy.set('a', instance.port);
    const rests = [
      ['', '/'],
      ['/', '/'],
      ['?b=c', '/?b=c'],
      ...[
        '//x',
        '/x//y',
        '/%2F',
        '/%2f',
        '/%20',
        '/a+b',
        '/;v=1',
        '/%C3%A9',
        '/%00',
        '/%0d%0a',
        '/%',
        '/%zz',
      ].map((rest) => [rest, rest]),
      ...[
        '/..',
        '/../b/x',
        '/%2e%2e/b',
        '/./x',
        '/|{}"\\^<>',
        '/\\1',
        '/$1',
        '/%[var()]',
        '/i/b/x',
        '/?q=/i/b',
      ].map((rest) => [rest, rest]),
      [`/${'x'.repeat(8000)}`, `/${'x'.repeat(8000)}`],
    ] as const;
    for (const [rest, wanted] of rests) {
      const { status, body } = await askProxy(proxy.port, `/i/a${rest}`);
      expect([status, body.split('\r\n')[0]]).toEqual([200, `GET ${wanted} HTTP/1.1`]);
    }
  });

  it.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'PROPFIND'])(
    'with %s gets the status and the body of the instance (A58, A59)',
    async (method) => {
      const proxy = await startProxy();
      const instance = await startBackendServer('it');
      await proxy.set('a', instance.backend.port);
      for (const status of [200, 404, 500, 502, 503, 504]) {
        instance.status = status;
        const answer = await askProxy(proxy.port, '/i/a/x', {
          method,
          body: method === 'POST' ? 'data' : '',
        });
        expect([answer.status, answer.body.trim()]).toEqual([status, method === 'HEAD' ? '' : 'it']);
      }
    },
  );

  it.each(['/', '/x', '/i', '/i/', '/i//x', '//i/a', '/I/a', '/x/i/a', '*'])(
    'for %s, which is off the prefix, is 404 (A71)',
    async (target) => {
      const proxy = await startProxy();
      const instance = await startRawBackend();
      await proxy.set('a', instance.port);
      const answer = await askProxy(proxy.port, target, target === '*' ? { method: 'OPTIONS' } : {});
      expect([answer.status, answer.body]).toEqual([404, '404 page not found\n']);
      expect(instance.heads).toEqual([]);
    },
  );

  it('goes by its path alone: what routes by host, cookie or field has done so before (A60)', async () => {
    const [instance, other] = [await startRawBackend(), await startRawBackend()];
    const proxy = await startProxy();
    await proxy.set('a', instance.port);
    await proxy.set('other', other.port);
    const fields = [
      ...['host: other', 'x-forwarded-host: other', 'x-forwarded-prefix: /i/other', 'forwarded: host=other'],
      ...['x-original-url: /i/other/', 'x-rewrite-url: /i/other/', 'referer: http://other/i/other/'],
      ...['cookie: SERVERID=other; instance=other', 'x-http-method-override: DELETE', 'origin: http://other'],
    ];
    const head = `GET /i/a/x?instance=other HTTP/1.1\r\n${fields.join('\r\n')}`;
    const { status } = parseAnswer(await askRaw(proxy.port, `${head}\r\n\r\n`, 250));
    expect(status).toBe(200);
    // And none is added, of which an instance could tell that there is a proxy.
    expect(instance.heads).toEqual([`GET /x?instance=other HTTP/1.1\r\n${fields.join('\r\n')}`]);
    expect(other.heads).toEqual([]);
  });

  it('for an unknown instance is 502 with its name, also as an upgrade, also once it is removed (A71, A73)', async () => {
    const proxy = await startProxy();
    const instance = await startRawBackend();
    await proxy.set('a', instance.port);
    await removeInstance(proxy.ctx, 'a');
    for (const headers of [[], upgradeFields.slice(1)]) {
      const answer = await askProxy(proxy.port, '/i/a/x', { headers });
      expect([answer.status, answer.body]).toEqual([502, 'unknown instance: a\n']);
    }
    await expect(openTunnel(proxy.port, '/i/a/x')).rejects.toThrow('HTTP/1.1 502 ');
    expect(instance.heads).toEqual([]);
  });

  it.each([
    ['nobody listens', undefined, 'cannot reach instance: a\n'],
    ['the connection is cut', 'cut', 'no answer of instance: a\n'],
  ] as const)('is 502 where %s (A59)', async (_, status, told) => {
    const proxy = await startProxy();
    const instance = await startBackendServer('it');
    if (status !== undefined) instance.status = status;
    await proxy.set('a', status === undefined ? await freePort() : instance.backend.port);
    for (const method of ['GET', 'POST']) {
      const times: number[] = [];
      for (let count = 0; count < 3; count += 1) {
        const startedAt = performance.now();
        const { status: answered, body, head } = await askProxy(proxy.port, '/i/a/x', { method });
        times.push(performance.now() - startedAt);
        expect([answered, body]).toEqual([502, told]);
        expect(head.toLowerCase()).toContain('x-content-type-options: nosniff');
      }
      // Of each of them HAProxy's own second attempt would wait a second.
      expect(Math.min(...times)).toBeLessThan(1_000);
    }
    await proxy.set('a', await freePort());
    await expect(openTunnel(proxy.port, '/i/a/x')).rejects.toThrow('HTTP/1.1 502 ');
  });

  it('that changes something is never sent twice, one that does not again where its connection ended unanswered', async () => {
    const proxy = await startProxy();
    const instance = await startBackendServer('it');
    instance.status = 'cut';
    await proxy.set('a', instance.backend.port);
    await askProxy(proxy.port, '/i/a/post', { method: 'POST', body: 'data' });
    await askProxy(proxy.port, '/i/a/get');
    const count = (method: string): number =>
      instance.requests.filter((line) => line.startsWith(method)).length;
    expect([count('POST'), count('GET')]).toEqual([1, 4]);
  });
});

describe('an upgrade', () => {
  it('is relayed to the instance with its prefix taken off, and is open in both directions (A61, A66)', async () => {
    const proxy = await startProxy();
    const instance = await startBackendServer('it');
    await proxy.set('a', instance.backend.port);
    const tunnel = await openTunnel(proxy.port, '/i/a/ws?room=1');
    expect(await tunnel.say('hello')).toBe('it: hello');
    expect(instance.requests).toEqual(['GET /ws?room=1 gateway.test']);
    tunnel.close();
  });

  it.each([
    ['from any origin (A62, A63)', [...upgradeFields, 'Origin: https://evil.test']],
    [
      'in other letters',
      ['connection: keep-alive , uPgRaDe', 'UPGRADE: websocket', ...upgradeFields.slice(2)],
    ],
  ])('%s is relayed', async (_, fields) => {
    const proxy = await startProxy();
    const instance = await startBackendServer('it');
    await proxy.set('a', instance.backend.port);
    expect(await (await openTunnel(proxy.port, '/i/a/', fields)).say('x')).toBe('it: x');
  });

  it('to another protocol than WebSocket is relayed as well', async () => {
    const proxy = await startProxy();
    const [taking, refusing] = [
      await startRawBackend('127.0.0.1', { upgrades: true }),
      await startRawBackend(),
    ];
    await proxy.set('taking', taking.port);
    await proxy.set('refusing', refusing.port);
    const fields = ['Connection: Upgrade', 'Upgrade: tcp'];
    const tunnel = await openTunnel(proxy.port, '/i/taking/', fields);
    expect(await tunnel.say('x')).toBe('x');
    await expect(openTunnel(proxy.port, '/i/refusing/', fields)).rejects.toThrow('200 OK');
    expect(refusing.heads[0]?.toLowerCase()).toContain('upgrade: tcp');
  });

  it('is one of as many as there are descriptors for: nothing else caps them (A64)', async () => {
    const proxy = await startProxy();
    const [, most] = /^Maxconn: (\d+)$/m.exec(await proxy.tell('show info')) ?? [];
    const [names = '', ...rows] = (await proxy.tell('show stat')).split('\n').map((line) => line.split(','));
    const column = (names as string[]).indexOf('slim');
    const limits = rows.map(([name, kind, ...rest]) => [name, kind, rest[column - 2]]);
    expect(limits.filter(([, kind]) => kind !== 'BACKEND')).toEqual([
      ['node', 'FRONTEND', most],
      ...['plain', 'once', 'tunnels'].map((name) => [name, 'instance', '']),
    ]);
  });

  it('that the instance never answers is 502 after ten seconds, and no tunnel any more', async () => {
    const proxy = await startProxy();
    const silent = createServer((socket) => void socket.on('error', () => {}));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void silent.close());
    await proxy.set('a', (silent.address() as AddressInfo).port);
    const startedAt = performance.now();
    await expect(openTunnel(proxy.port, '/i/a/')).rejects.toThrow('HTTP/1.1 502 ');
    expect(performance.now() - startedAt).toBeGreaterThan(9_000);
    await until(async () => (await countTunnels(proxy.ctx)).total === 0);
  });

  it('stays open however long nobody says anything, longer than all that bounds a handshake', async () => {
    const proxy = await startProxy();
    const instance = await startBackendServer('it');
    await proxy.set('a', instance.backend.port);
    const silent = await openTunnel(proxy.port, '/i/a/');
    const used = await openTunnel(proxy.port, '/i/a/');
    await used.say('x');
    // Its bounds are 5 s for the connection and 10 s for the answer.
    await sleep(12_000);
    expect([await silent.say('still'), await used.say('still')]).toEqual(['it: still', 'it: still']);
    const shown = await proxy.tell('show sess');
    const ends = [...shown.matchAll(/ be=tunnels .* exp=(\S+)/g)].map(([, end]) => end);
    expect(ends).toEqual([expect.stringMatching(/^2[34]d/), expect.stringMatching(/^2[34]d/)]);
  });
});
