// How the admin API is spoken to: against the real Caddy, and against servers that behave as it does when it is ill.
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { fetchConfig, sendConfig } from '../../../src/lib/caddy/admin.ts';
import { type ReeveError, StepError, UnavailableError } from '../../../src/lib/errors.ts';
import { startCaddy } from '../../support/caddy.ts';
import { freePort } from '../../support/ports.ts';

const signal = new AbortController().signal;

async function listen(handler: RequestListener): Promise<string> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function failure(work: Promise<unknown>): Promise<ReeveError> {
  return await work.then(
    () => expect.fail('nothing failed'),
    (error) => error,
  );
}

describe('the configuration of Caddy', () => {
  it('is read with the tag that its answer ends with, and replaced by it once', async () => {
    const caddy = await startCaddy();
    const { admin } = caddy.settings;
    const read = await fetchConfig(admin, { signal });
    expect(JSON.parse(read.text)).toEqual({ admin: { listen: new URL(admin).host } });
    expect(read.etag).toMatch(/^"\/config\/ [0-9a-f]+"$/);

    const text = JSON.stringify({ admin: { listen: new URL(admin).host }, apps: { http: {} } });
    const { etag } = read;
    expect(await sendConfig(admin, text, { ifMatch: etag, signal })).toBe('done');
    expect(await sendConfig(admin, text, { ifMatch: etag, signal })).toBe('changed');
    expect(await sendConfig(admin, text, { signal })).toBe('done');
    expect(await caddy.changes()).toEqual(['POST /config/', 'POST /config/', 'POST /load']);
  });

  it.each([undefined, 'match'])(
    'that Caddy refuses is told in its own words (If-Match: %s)',
    async (guard) => {
      const { admin } = (await startCaddy()).settings;
      const { etag } = await fetchConfig(admin, { signal });
      const ifMatch = guard === undefined ? undefined : etag;
      const error = await failure(sendConfig(admin, '{"apps":{"nonsense":{}}}', { ifMatch, signal }));
      expect(error).toBeInstanceOf(StepError);
      expect(error.code).toBe('caddy-refused');
      expect(error.message).toMatch(
        /^cannot load the configuration of Caddy: status [45]00: .*unknown module: nonsense/,
      );
    },
  );

  it('is asked for again where a reset met the first question', async () => {
    let asked = 0;
    const admin = await listen((incoming, outgoing) => {
      asked += 1;
      if (asked === 1) incoming.socket.resetAndDestroy();
      else outgoing.end('null\n');
    });
    expect(await fetchConfig(admin, { signal })).toEqual({ text: 'null\n' });
  });

  it('is asked for below the path, with the credentials and the tag of a proxy before it', async () => {
    const admin = await listen(({ url, headers }, outgoing) => {
      outgoing.setHeader('etag', '"header"');
      outgoing.end(JSON.stringify({ url, authorization: headers.authorization, origin: headers.origin }));
    });
    const address = `${admin.replace('//', '//ops:hush@')}/caddy`;
    const { text, etag } = await fetchConfig(address, { signal });
    expect(etag).toBe('"header"');
    expect(JSON.parse(text)).toEqual({
      url: '/caddy/config/',
      authorization: `Basic ${Buffer.from('ops:hush').toString('base64')}`,
    });
  });
});

describe('an admin API that cannot be used (L48, L49)', () => {
  it('where nothing listens', async () => {
    const admin = `http://ops:hush@127.0.0.1:${await freePort()}`;
    for (const work of [fetchConfig(admin, { signal }), sendConfig(admin, '{}', { signal })]) {
      const error = await failure(work);
      expect(error).toBeInstanceOf(UnavailableError);
      expect(error.message).toMatch(
        /^cannot (read|load) the configuration of Caddy at "127\.0\.0\.1:\d+": nothing listens there; start it/,
      );
    }
  });

  it.each<[string, RequestListener, RegExp]>([
    [
      'refuses',
      (_, outgoing) => outgoing.writeHead(403).end('{"error":"host not allowed: x"}'),
      /: status 403: host not allowed: x$/,
    ],
    [
      'is something else',
      (_, outgoing) => outgoing.writeHead(502).end('<p>\n bad gateway'),
      /: status 502: <p> bad gateway$/,
    ],
    ['says nothing', (_, outgoing) => outgoing.writeHead(500).end('{}'), /: status 500$/],
    ['hangs up', ({ socket }) => socket.resetAndDestroy(), /: it closed the connection without an answer$/],
    [
      'breaks off',
      (_, outgoing) => void outgoing.writeHead(200).write('{', () => outgoing.destroy()),
      /: (aborted|it closed the connection without an answer)$/,
    ],
    [
      'never ends',
      (_, outgoing) => void outgoing.end(Buffer.alloc(33 * 1024 * 1024, ' ')),
      /: its answer is larger than \d+ bytes$/,
    ],
  ])('where it %s', async (_, handler, message) => {
    const error = await failure(fetchConfig(await listen(handler), { signal }));
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error.message).toMatch(message);
  });

  it('where it speaks no HTTP', async () => {
    const server = createTcpServer((socket) => socket.end('+OK ready\r\n'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const error = await failure(fetchConfig(`http://127.0.0.1:${port}`, { signal }));
    expect(error.message).toMatch(/: it answers something that is not HTTP$/);
  });

  it('where it does not answer in time, or we are to stop', async () => {
    const admin = await listen(() => {});
    const late = await failure(fetchConfig(admin, { signal }));
    expect([late.code, late.message]).toEqual(['deadline', expect.stringMatching(/: no answer within 5s$/)]);
    const ending = new AbortController();
    const interrupted = failure(sendConfig(admin, '{}', { signal: ending.signal }));
    ending.abort();
    expect((await interrupted).code).toBe('interrupted');
  });
});
