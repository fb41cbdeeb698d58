// What is served with the documents: by the real Caddy, over HTTPS, with certificates of its own authority.
import { describe, expect, it } from 'vitest';
import { fetchConfig } from '../../../src/lib/caddy/admin.ts';
import { findCaddyBinary, knowsCloseDelay, readCaddyVersion } from '../../../src/lib/caddy/version.ts';
import type { CaddyConfig } from '../../../src/lib/config/config.ts';
import { buildCaddyDocument } from '../../../src/lib/edge/caddy-document.ts';
import { pushCaddy } from '../../../src/lib/edge/push.ts';
import type { Route } from '../../../src/lib/edge/route.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { startBackend } from '../../support/backends.ts';
import { type Caddy, fetchOnceServed, startCaddy } from '../../support/caddy.ts';
import { freePort } from '../../support/ports.ts';

const signal = new AbortController().signal;

type ServeOptions = Partial<CaddyConfig> & { via?: string; debug?: boolean };

async function serve(
  caddy: Caddy,
  routes: readonly Route[],
  { via, debug = false, ...more }: ServeOptions = {},
): Promise<void> {
  const settings = { caddy: { ...caddy.settings, ...more }, closeDelay: false };
  const built = buildCaddyDocument(routes, { ...settings, ...(via === undefined ? {} : { via }) });
  const document = debug ? { ...built, logging: { logs: { default: { level: 'DEBUG' } } } } : built;
  const { admin } = caddy.settings;
  const live = await fetchConfig(admin, { signal });
  expect((await pushCaddy({ admin, document, live, signal, log: silentLog })).textHash).toBeDefined();
}

/** What six requests are answered, each body once. */
async function fetchSome(caddy: Caddy, path: string): Promise<string[]> {
  const bodies = new Set<string>();
  for (let at = 0; at < 6; at += 1) bodies.add((await caddy.fetch('app.example.com', path)).body);
  return [...bodies].sort();
}

describe('Caddy alone', () => {
  it('serves each domain over HTTPS from its backends, IPv6 too, the exact name before the wildcard (L43, R48)', async () => {
    const caddy = await startCaddy();
    const [one, two, any, six] = await Promise.all([
      startBackend('one'),
      startBackend('two'),
      startBackend('any'),
      startBackend('six', { host: '::1' }),
    ]);
    await serve(caddy, [
      { domain: '*.example.com', backends: [any] },
      { domain: 'app.example.com', backends: [one, two], healthPath: '/health' },
      { domain: 'six.example.org', backends: [six] },
    ]);
    await fetchOnceServed(caddy, 'app.example.com');
    await expect
      .poll(() => fetchSome(caddy, '/x?y=1'), { timeout: 30_000 })
      .toEqual(['one GET /x?y=1', 'two GET /x?y=1']);
    expect((await fetchOnceServed(caddy, 'other.example.com')).body).toBe('any GET /');
    expect((await fetchOnceServed(caddy, 'six.example.org')).body).toBe('six GET /');
  });

  it('tries another backend where one is gone, and leaves it out then (L103, L104)', async () => {
    const caddy = await startCaddy();
    const [gone, here] = await Promise.all([startBackend('gone'), startBackend('here')]);
    await serve(caddy, [{ domain: 'app.example.com', backends: [gone, here] }]);
    await fetchOnceServed(caddy, 'app.example.com');
    await gone.stop();
    for (let at = 0; at < 10; at += 1) {
      expect(await caddy.fetch('app.example.com')).toEqual({ status: 200, body: 'here GET /' });
    }
  });

  it('leaves out a backend whose probe fails (L105)', async () => {
    const caddy = await startCaddy();
    const [ill, well] = await Promise.all([startBackend('ill', { status: 404 }), startBackend('well')]);
    await serve(caddy, [{ domain: 'app.example.com', backends: [ill, well], healthPath: '/health' }]);
    await fetchOnceServed(caddy, 'app.example.com');
    await expect.poll(() => caddy.log(), { timeout: 30_000 }).toContain('unexpected status code');
    // It is told before it is done.
    await expect.poll(() => fetchSome(caddy, '/'), { timeout: 30_000 }).toEqual(['well GET /']);
  });

  it('serves the others where the authority for one name cannot be reached', async () => {
    const caddy = await startCaddy();
    const backend = await startBackend('one');
    const acmeDirectory = `https://127.0.0.1:${await freePort()}/directory`;
    const domains = ['bad.example.com', 'app.localhost'];
    await serve(
      caddy,
      domains.map((domain) => ({ domain, backends: [backend] })),
      { issuer: 'acme', acmeDirectory },
    );
    expect(await fetchOnceServed(caddy, 'app.localhost')).toEqual({ status: 200, body: 'one GET /' });
    await expect.poll(() => caddy.log(), { timeout: 30_000 }).toMatch(/"bad\.example\.com".*directory/);
    await expect(caddy.fetch('bad.example.com')).rejects.toThrow(/alert/);
    expect(await caddy.fetch('app.localhost')).toEqual({ status: 200, body: 'one GET /' });
  });

  it('is told of a delay for tunnels by its version only: an older one would refuse everything (R44)', async () => {
    const binary = await findCaddyBinary();
    const version = await readCaddyVersion(binary?.path ?? '', { signal });
    expect(version).toMatch(/^\d+\.\d+\.\d+/);
    const caddy = await startCaddy();
    const route = { domain: 'app.example.com', backends: [await startBackend('one')] };
    const document = buildCaddyDocument([route], { caddy: caddy.settings, closeDelay: true });
    const { admin } = caddy.settings;
    const live = await fetchConfig(admin, { signal });
    const accepted = await pushCaddy({ admin, document, live, signal, log: silentLog }).then(
      () => true,
      () => false,
    );
    expect(accepted).toBe(knowsCloseDelay(version));
  });
});

describe('Caddy before HAProxy', () => {
  const routes: Route[] = [
    { domain: '*.example.com', backends: [] },
    { domain: 'app.example.com', backends: [] },
  ];

  it('names the backend of each domain, whatever the client says', async () => {
    const caddy = await startCaddy();
    const balancer = await startBackend('balancer');
    await serve(caddy, routes, { via: `127.0.0.1:${balancer.port}` });
    await fetchOnceServed(caddy, 'app.example.com');
    await fetchOnceServed(caddy, 'any.example.com');
    const headers = { 'x-reeve-route': 'else.example.com', host: 'APP.example.com:443' };
    expect((await caddy.fetch('app.example.com', '/a', { headers })).body).toBe(
      'balancer GET /a for app.example.com',
    );
    expect((await caddy.fetch('any.example.com', '/b', { method: 'POST', body: 'form' })).body).toBe(
      'balancer POST /b form for _.example.com',
    );
  });

  it('passes on what HAProxy answers, and does not think less of it', async () => {
    const caddy = await startCaddy();
    const balancer = await startBackend('none', { status: 503 });
    await serve(caddy, routes, { via: `127.0.0.1:${balancer.port}` });
    await fetchOnceServed(caddy, 'app.example.com');
    for (let at = 0; at < 3; at += 1)
      expect((await caddy.fetch('app.example.com')).body).toMatch(/^none GET/);
  });

  it.each(['GET', 'POST'])('keeps a %s until HAProxy is back', async (method) => {
    const caddy = await startCaddy();
    const before = await startBackend('before');
    await serve(caddy, routes, { via: `127.0.0.1:${before.port}`, debug: true });
    await fetchOnceServed(caddy, 'app.example.com');
    await before.stop();
    const waiting = caddy.fetch('app.example.com', '/', { method });
    await expect.poll(() => caddy.log(), { timeout: 30_000 }).toContain('connect: connection refused');
    await startBackend('after', { port: before.port });
    expect((await waiting).body).toBe(`after ${method} / for app.example.com`);
  });
});
