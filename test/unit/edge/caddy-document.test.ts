// What Caddy is given, for each balancer and each setting.
import { describe, expect, it } from 'vitest';
import type { CaddyConfig } from '../../../src/lib/config/config.ts';
import { buildCaddyDocument } from '../../../src/lib/edge/caddy-document.ts';
import { backendName, type Route } from '../../../src/lib/edge/route.ts';

const standard: CaddyConfig = {
  admin: 'http://127.0.0.1:2019',
  httpPort: 80,
  httpsPort: 443,
  issuer: 'acme',
};
const settings = { caddy: standard, closeDelay: false };
const via = '127.0.0.1:7300';

const routes: Route[] = [
  { domain: '*.example.com', backends: [{ host: '10.0.1.7', port: 20030 }] },
  {
    domain: 'app.example.com',
    backends: [
      { host: '10.0.1.5', port: 20001 },
      { host: '10.0.1.6', port: 20001 },
    ],
    healthPath: '/health',
  },
  { domain: 'six.example.org', backends: [{ host: 'fd00::5', port: 20002 }] },
];

type Http = {
  http_port?: number;
  https_port?: number;
  servers: { launchpad?: { listen: string[]; routes: { match: [{ host: [string] }]; handle: [object] }[] } };
};
type Document = { admin: unknown; apps: { http: Http; tls?: unknown; pki?: unknown } };

function build(given: readonly Route[], more: Partial<CaddyConfig> = {}): Document {
  return buildCaddyDocument(given, { ...settings, caddy: { ...standard, ...more } }) as Document;
}

const asText = (document: object): string => `${JSON.stringify(document, null, 2)}\n`;
const hostsOf = (document: object): string[] =>
  ((document as Document).apps.http.servers.launchpad?.routes ?? []).map(({ match }) => match[0].host[0]);

describe('the document of Caddy', () => {
  it('has retries, passive eviction and probes as launch-pad’s agent has them where Caddy balances (L103-L105)', async () => {
    const document = buildCaddyDocument(routes, settings);
    await expect(asText(document)).toMatchFileSnapshot('../../fixtures/golden/caddy-alone.json');
  });

  it('has one route a domain to HAProxy where that balances, which names its backend', async () => {
    const document = buildCaddyDocument(routes, { ...settings, via });
    await expect(asText(document)).toMatchFileSnapshot('../../fixtures/golden/caddy-haproxy.json');
  });

  it('does not depend on the backends where HAProxy balances', () => {
    const without = routes.map(({ domain }) => ({ domain, backends: [] }));
    expect(buildCaddyDocument(without, { ...settings, via })).toEqual(
      buildCaddyDocument(routes, { ...settings, via }),
    );
  });

  it('has no server without a route, and no route without a backend where Caddy balances', () => {
    expect(build([]).apps).toEqual({ http: { servers: {} } });
    expect(build([{ domain: 'idle.example.com', backends: [] }]).apps).toEqual({ http: { servers: {} } });
  });

  it('puts exact names before wildcards, otherwise sorted, whatever order they come in (R48)', () => {
    const names = ['*.b.example', 'z.example', '*.a.example', 'a.b.example'];
    const given = names.map((domain) => ({ domain, backends: [{ host: '10.0.1.5', port: 20001 }] }));
    const sorted = ['a.b.example', 'z.example', '*.a.example', '*.b.example'];
    expect(hostsOf(build(given))).toEqual(sorted);
    expect(buildCaddyDocument(given.toReversed(), settings)).toEqual(build(given));
    expect(hostsOf(buildCaddyDocument(given, { ...settings, via }))).toEqual(sorted);
  });

  it.each([undefined, via])(
    'delays the end of tunnels only for a Caddy that can (balancer at %s, R44)',
    (address) => {
      const base = { ...settings, ...(address === undefined ? {} : { via: address }) };
      const with_ = buildCaddyDocument(routes, { ...base, closeDelay: true });
      expect(asText(with_).match(/"stream_close_delay": "1h"/g)).toHaveLength(routes.length);
      expect(asText(buildCaddyDocument(routes, base))).not.toContain('stream_close_delay');
    },
  );

  it('serves other ports', () => {
    const { http } = build(routes, { httpPort: 8080, httpsPort: 8443 }).apps;
    expect(http).toMatchObject({ http_port: 8080, https_port: 8443 });
    expect(http.servers.launchpad?.listen).toEqual([':8443']);
    expect(build([], { httpPort: 8080 }).apps.http).toEqual({ http_port: 8080, servers: {} });
  });

  const pki = { certificate_authorities: { local: { install_trust: false } } };
  it.each([
    [{ issuer: 'internal' as const }, { module: 'internal' }],
    [{ email: 'ops@example.com' }, { module: 'acme', email: 'ops@example.com' }],
    [{ acmeDirectory: 'https://ca.example/dir' }, { module: 'acme', ca: 'https://ca.example/dir' }],
  ])('has certificates signed as %j says', (more, issuer) => {
    const { tls, pki: authorities } = build(routes, more).apps;
    expect({ tls, pki: authorities }).toEqual({
      tls: { automation: { policies: [{ issuers: [issuer] }] } },
      pki,
    });
  });

  const local = (port: number) => ['', `127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`];
  it.each([
    ['http://localhost:2019', '127.0.0.1:2019', local(2019)],
    ['http://127.0.0.1:2020', '127.0.0.1:2020', local(2020)],
    ['http://[::1]:2019', '[::1]:2019', local(2019)],
    ['http://127.0.0.1', '127.0.0.1:80', [...local(80), '127.0.0.1']],
    ['http://10.0.0.5:2019', '10.0.0.5:2019', [...local(2019), '10.0.0.5:2019']],
    ['https://edge.example.com/caddy', '127.0.0.1:2019', [...local(2019), 'edge.example.com']],
  ])('keeps the admin API at %s (L163)', (admin, listen, origins) => {
    expect(build([], { admin }).admin).toEqual({ listen, origins });
  });
});

describe('the name of a backend', () => {
  it.each([
    ['app.example.com', 'app.example.com'],
    ['*.example.com', '_.example.com'],
  ])('of %s is %s', (domain, name) => {
    expect(backendName(domain)).toBe(name);
  });
});
