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
import { askProxy, openTunnel, upgradeFields } from '../../support/proxy-client.ts';
import { startRawBackend } from '../../support/raw-backend.ts';

describe('a plain request', () => {
  it('goes to the port that the instance has now, at the same address (A56, A57, A58, A75)', async () => {
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
    const startedAt = performance.now();
    for (const method of ['GET', 'POST']) {
      const { status: answered, body, head } = await askProxy(proxy.port, '/i/a/x', { method });
      expect([answered, body]).toEqual([502, told]);
      expect(head.toLowerCase()).toContain('x-content-type-options: nosniff');
    }
    // HAProxy's own second attempt would wait a second.
    expect(performance.now() - startedAt).toBeLessThan(1000);
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
    const instance = await startRawBackend();
    await proxy.set('a', instance.port);
    await expect(openTunnel(proxy.port, '/i/a/', ['Connection: Upgrade', 'Upgrade: tcp'])).rejects.toThrow(
      '200 OK',
    );
    expect(instance.heads[0]?.toLowerCase()).toContain('upgrade: tcp');
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
