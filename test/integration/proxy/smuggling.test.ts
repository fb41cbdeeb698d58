// What a client may try so that proxy and instance read a request differently, and names that are paths: the corpus. An instance
// must never get a request that the proxy has not seen as one, and never one of another instance's.
import { describe, expect, it } from 'vitest';
import { drainProxy } from '../../../src/lib/proxy/drain.ts';
import { startProxy, type TestProxy } from '../../support/proxy.ts';
import { askRaw, parseAnswer } from '../../support/proxy-client.ts';
import { type RawBackend, startRawBackend } from '../../support/raw-backend.ts';

const head = 'POST /i/a/x HTTP/1.1\r\nHost: gateway.test\r\n';
const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: gateway.test\r\n\r\n';

/** What is refused, with the status; nothing of it may reach the instance. */
const refused: readonly (readonly [what: string, status: number, bytes: string])[] = [
  ['two lengths', 400, `${head}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde`],
  ['a length with a sign', 400, `${head}Content-Length: +4\r\n\r\nabcd`],
  ['a negative length', 400, `${head}Content-Length: -1\r\n\r\n`],
  ['an empty length', 400, `${head}Content-Length: \r\n\r\n`],
  ['a hexadecimal length', 400, `${head}Content-Length: 0x4\r\n\r\nabcd`],
  ['a list of lengths', 400, `${head}Content-Length: 4, 5\r\n\r\nabcd`],
  ['a length out of all bounds', 400, `${head}Content-Length: 99999999999999999999999\r\n\r\n`],
  ['another coding than chunked', 400, `${head}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`],
  ['identity', 400, `${head}Transfer-Encoding: identity\r\n\r\n`],
  ['chunked before identity', 400, `${head}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`],
  ['chunked twice', 400, `${head}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
  ['gzip and chunked', 422, `${head}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
  ['chunked in HTTP/1.0', 400, 'POST /i/a/x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  ['a blank before a colon', 400, `${head}Content-Length : 4\r\n\r\nabcd`],
  ['a vertical tab in a name', 400, `${head}Transfer-Encoding\v: chunked\r\n\r\n0\r\n\r\n`],
  ['a bare carriage return in a field', 400, `${head}X: a\rContent-Length: 4\r\n\r\nabcd`],
  ['a NUL in a field', 400, `${head}X: a\0b\r\nContent-Length: 4\r\n\r\nabcd`],
  ['a NUL in the host', 400, 'GET /i/a/x HTTP/1.1\r\nHost: gateway.test\0.a\r\n\r\n'],
  ['a NUL in the last field', 400, `${head}Content-Length: 0\r\nX: a\0\r\n\r\n`],
  ['a field without a colon', 400, `${head}Content-Length 4\r\n\r\nabcd`],
  ['a field without a name', 400, `${head}: 4\r\n\r\n`],
  ['a chunk size that is none', 400, `${head}Transfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n0\r\n\r\n`],
  ['a negative chunk size', 400, `${head}Transfer-Encoding: chunked\r\n\r\n-1\r\nabc\r\n0\r\n\r\n`],
  [
    'a chunk size out of all bounds',
    400,
    `${head}Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nabc\r\n0\r\n\r\n`,
  ],
  ['two hosts', 400, 'GET /i/a/x HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n'],
  ['no host', 400, 'GET /i/a/x HTTP/1.1\r\n\r\n'],
  ['a host unlike the target', 400, 'GET http://a.test/i/a/x HTTP/1.1\r\nHost: b.test\r\n\r\n'],
  ['a blank in the target', 400, 'GET /i/a/x y HTTP/1.1\r\nHost: gateway.test\r\n\r\n'],
  ['a tab in the target', 400, 'GET /i/a/x\ty HTTP/1.1\r\nHost: gateway.test\r\n\r\n'],
  ['bytes above ASCII in the target', 400, 'GET /i/a/\xc3\xa9 HTTP/1.1\r\nHost: gateway.test\r\n\r\n'],
  ['a fragment in the target', 400, 'GET /i/a/x#y HTTP/1.1\r\nHost: gateway.test\r\n\r\n'],
  ['HTTP/0.9', 400, 'GET /i/a/x\r\n\r\n'],
  ['HTTP/1.2', 400, 'GET /i/a/x HTTP/1.2\r\nHost: gateway.test\r\n\r\n'],
  ['HTTP/2 in clear text', 400, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'],
  ['a lower-case protocol', 400, 'GET /i/a/x http/1.1\r\nHost: gateway.test\r\n\r\n'],
  ['a TLS hello', 400, '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\r\n\r\n'],
  ['fields of 64 KiB', 400, `${head}X: ${'x'.repeat(65_536)}\r\n\r\n`],
  ['200 fields', 400, `${head}${'X: y\r\n'.repeat(200)}\r\n`],
  ['a target of 64 KiB', 400, `GET /i/a/${'x'.repeat(65_536)} HTTP/1.1\r\nHost: gateway.test\r\n\r\n`],
  [
    'a WebSocket without its key',
    400,
    'GET /i/a/x HTTP/1.1\r\nHost: g\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
  ],
];

/** Off the prefix, whatever they are: nothing is connected to by its name. */
const elsewhere = [
  'CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n',
  'CONNECT /i/a/ HTTP/1.1\r\nHost: g\r\n\r\n',
  'GET http://127.0.0.1:22/ HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n',
  'GET file:///etc/passwd HTTP/1.1\r\nHost: g\r\n\r\n',
];

/** What is passed on in the one way in which it can be meant. */
const normalised: readonly (readonly [what: string, isKept: boolean, bytes: string])[] = [
  [
    'a length beside chunked',
    false,
    `${head}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  ],
  [
    'chunked beside a length',
    false,
    `${head}Transfer-Encoding: chunked\r\nContent-Length: 60\r\n\r\n0\r\n\r\n`,
  ],
  ['the same length twice', true, `${head}Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd`],
  ['a folded field', true, `${head}X: a\r\n b\r\nContent-Length: 0\r\n\r\n`],
  ['bare line feeds', true, 'POST /i/a/x HTTP/1.1\nHost: gateway.test\nContent-Length: 0\n\n'],
  ['a chunk with an extension', true, `${head}Transfer-Encoding: chunked\r\n\r\n1;a=b\r\nz\r\n0\r\n\r\n`],
];

/** Instances that there are not: whatever they look like once decoded, they are looked up as they are. */
const names = [
  ...[
    '..',
    '.',
    '%2e%2e',
    '%2E%2E',
    '..%2f..',
    '%2e',
    'a%2Fx',
    'a%2fx',
    'a%2e',
    '%61',
    'A',
    'a%00',
    'a%20',
    'a;x',
    'a%0a',
  ],
  ...[
    'a..',
    '...',
    '%252e%252e',
    'a%5cb',
    'a\\b',
    'a%',
    'a%zz',
    '~',
    '*',
    '@',
    'a:20001',
    '127.0.0.1',
    'localhost',
  ],
  ...[
    'instances.map',
    'drain',
    'backend_host',
    '%[src]',
    '$(id)',
    '`id`',
    "'",
    '"',
    'a%3Fx',
    '\\1',
    '0x5648fd52c0c0',
  ],
];

async function start(): Promise<{ proxy: TestProxy; instance: RawBackend; other: RawBackend }> {
  const [proxy, instance, other] = [await startProxy(), await startRawBackend(), await startRawBackend()];
  await proxy.set('a', instance.port);
  await proxy.set('other', other.port);
  return { proxy, instance, other };
}

const quietMs = 250;

/** Of a protocol that HAProxy does not know, with a request behind it that is sent before any answer. */
function sendUpgrade({ port }: TestProxy, name: string): Promise<string> {
  const upgrade = `GET /i/${name}/x HTTP/1.1\r\nHost: g\r\nConnection: upgrade\r\nUpgrade: tcp\r\n\r\n`;
  return askRaw(port, `${upgrade}${behind}`, quietMs);
}
const behind = 'GET /i/other/smuggled HTTP/1.1\r\nHost: g\r\n\r\n';

function firstLines({ heads }: RawBackend): (string | undefined)[] {
  return heads.map((seen) => seen.split('\r\n')[0]);
}

describe('a request that could be read in two ways', () => {
  it.each(refused)('is refused: %s', async (_, status, bytes) => {
    const { proxy, instance } = await start();
    const answer = parseAnswer(await askRaw(proxy.port, bytes, quietMs));
    expect(answer.status).toBe(status);
    expect(instance.heads).toEqual([]);
  });

  it.each(normalised)(
    'is passed on in one way, and what follows is a request of its own: %s',
    async (_, isKept, bytes) => {
      const { proxy, instance, other } = await start();
      const text = await askRaw(proxy.port, `${bytes}${smuggled}`, quietMs);
      // The second one is off the prefix: answered by the proxy, if at all, and never seen by the instance.
      expect(text.match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 200', ...(isKept ? ['HTTP/1.1 404'] : [])]);
      expect(firstLines(instance)).toEqual(['POST /x HTTP/1.1']);
      expect(instance.received()).not.toContain('smuggled');
      expect(
        /^content-length/im.test(instance.heads[0] ?? '') &&
          /^transfer-encoding/im.test(instance.heads[0] ?? ''),
      ).toBe(false);
      expect(other.heads).toEqual([]);
    },
  );

  it.each(elsewhere)('leads nowhere but to instances: %j', async (bytes) => {
    const { proxy, instance } = await start();
    const { status } = parseAnswer(await askRaw(proxy.port, bytes, quietMs));
    expect([400, 404]).toContain(status);
    expect(instance.heads).toEqual([]);
  });

  it('behind an upgrade that its instance takes is that tunnel’s, byte for byte, and nobody else’s', async () => {
    const { proxy, other } = await start();
    const taking = await startRawBackend('127.0.0.1', { upgrades: true });
    await proxy.set('taking', taking.port);
    const text = await sendUpgrade(proxy, 'taking');
    // As the instance got it: it sends back what it is told.
    expect(text).toBe(
      `HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: tcp\r\n\r\n${behind}`,
    );
    expect(firstLines(taking)).toEqual(['GET /x HTTP/1.1']);
    expect(other.heads).toEqual([]);
  });

  it('behind an upgrade that its instance refuses is a request of its own, which that instance never sees', async () => {
    const { proxy, instance, other } = await start();
    const text = await sendUpgrade(proxy, 'a');
    expect(text.match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200']);
    expect(firstLines(instance)).toEqual(['GET /x HTTP/1.1']);
    expect(instance.received()).not.toContain('smuggled');
    expect(firstLines(other)).toEqual(['GET /smuggled HTTP/1.1']);
  });

  it('behind an upgrade that a drain refuses is a request of its own, and its instance sees none of it', async () => {
    const { proxy, instance, other } = await start();
    await drainProxy(proxy.ctx, { boundMs: 0 });
    const text = await sendUpgrade(proxy, 'a');
    expect(text.match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 503', 'HTTP/1.1 200']);
    expect(instance.received()).toBe('');
    expect(firstLines(other)).toEqual(['GET /smuggled HTTP/1.1']);
  });
});

describe('an instance’s name', () => {
  it('is what stands there, byte by byte: no way to files, to another instance or to a port', async () => {
    const { proxy, instance, other } = await start();
    const answers = await Promise.all(
      names.map(async (name) => {
        const bytes = `GET /i/${name}/x HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n`;
        return [name, parseAnswer(await askRaw(proxy.port, bytes))] as const;
      }),
    );
    expect(
      answers.filter(([, { status }]) => status !== 502).map(([name, { status }]) => `${name} ${status}`),
    ).toEqual([]);
    for (const [name, { body, head: fields }] of answers) {
      expect(body).toBe(`unknown instance: ${name}\n`);
      expect(fields.toLowerCase()).toContain('x-content-type-options: nosniff');
    }
    expect([...instance.heads, ...other.heads]).toEqual([]);
  });

  it.each([
    '/i/a/../other/x',
    '/i/a/%2e%2e/other/x',
    '/i/a/..%2fother/x',
    '/i/a//../../other',
    '/i/a/./x',
    '/x/../i/a/x',
  ])('decides alone: %s leads nowhere else', async (target) => {
    const { proxy, instance, other } = await start();
    await askRaw(proxy.port, `GET ${target} HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n`);
    expect(other.heads).toEqual([]);
    const isUnder = target.startsWith('/i/a/');
    expect(instance.heads.map((seen) => seen.split(' ')[1])).toEqual(
      isUnder ? [target.slice('/i/a'.length)] : [],
    );
  });
});

describe('fields', () => {
  it('of 30,000 bytes pass, values unchanged', async () => {
    const { proxy, instance } = await start();
    const value = 'x'.repeat(30_000);
    const answer = await askRaw(
      proxy.port,
      `GET /i/a/ HTTP/1.1\r\nHost: g\r\nX-Long: ${value}\r\n\r\n`,
      quietMs,
    );
    expect(parseAnswer(answer).status).toBe(200);
    expect(instance.heads[0]).toContain(`x-long: ${value}`);
  });

  it('that are never finished hold a connection for 10 s, and no tunnel', async () => {
    const { proxy, instance } = await start();
    const startedAt = performance.now();
    const answer = parseAnswer(await askRaw(proxy.port, 'GET /i/a/ HTTP/1.1\r\nHost: g\r\nX: '));
    expect(answer.status).toBe(408);
    expect(performance.now() - startedAt).toBeGreaterThan(9_000);
    expect(instance.heads).toEqual([]);
  });
});
