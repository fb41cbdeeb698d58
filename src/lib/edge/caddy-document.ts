// Caddy's whole configuration for the edge's routes. Alone, Caddy balances exactly as launch-pad's agent has it do; before
// HAProxy it has TLS and the names only, so that nothing but another set of domains changes the document. Pure.
import { compareBytewise } from '../cluster/canonical.ts';
import type { CaddyConfig } from '../config/config.ts';
import type { CaddyDocument } from './balancer.ts';
import { backendName, dialOf, type Route } from './route.ts';

export type DocumentSettings = {
  caddy: CaddyConfig;
  /** Whether this Caddy knows `stream_close_delay`: one that does not refuses the document for it. */
  closeDelay: boolean;
  /** HAProxy's `IP:PORT`, where it balances. */
  via?: string;
};

/** The header by which Caddy tells HAProxy the backend: a request's Host may be spelled in many ways. */
export const routeHeader = 'X-Reeve-Route';

/** A Caddy that is older than this field refuses the whole document, and names it. */
export const closeDelayField = 'stream_close_delay';

export function buildCaddyDocument(routes: readonly Route[], settings: DocumentSettings): CaddyDocument {
  const { caddy, via } = settings;
  // HAProxy answers for a domain that has no backend just now; alone, Caddy has nothing to say for it.
  const served = via === undefined ? routes.filter(({ backends }) => backends.length > 0) : routes;
  return {
    admin: buildAdmin(caddy),
    apps: { http: buildHttp(sortRoutes(served), settings), ...buildCertificates(caddy) },
  };
}

/** Exact names before wildcards, since the first route that matches is taken (R48). */
function sortRoutes(routes: readonly Route[]): Route[] {
  return routes.toSorted(
    (left, right) =>
      Number(isWildcard(left)) - Number(isWildcard(right)) || compareBytewise(left.domain, right.domain),
  );
}

function isWildcard({ domain }: Route): boolean {
  return domain.startsWith('*.');
}

/** Without this block a load would move the admin API to Caddy's default. An empty origin lets requests without Host pass. */
function buildAdmin(caddy: CaddyConfig): unknown {
  const url = new URL(caddy.admin);
  // Through TLS or a path something stands before Caddy: where it listens itself is not in the address.
  const isDirect = url.protocol === 'http:' && url.pathname === '/';
  const port = isDirect ? url.port || '80' : '2019';
  const host = isDirect && url.hostname !== 'localhost' ? url.hostname : '127.0.0.1';
  const origins = ['', ...['127.0.0.1', 'localhost', '[::1]'].map((name) => `${name}:${port}`)];
  return {
    listen: `${host}:${port}`,
    origins: origins.includes(url.host) ? origins : [...origins, url.host],
  };
}

function buildHttp(routes: readonly Route[], settings: DocumentSettings): Record<string, unknown> {
  const { httpPort, httpsPort } = settings.caddy;
  const ports = {
    ...(httpPort === 80 ? {} : { http_port: httpPort }),
    ...(httpsPort === 443 ? {} : { https_port: httpsPort }),
  };
  if (routes.length === 0) return { ...ports, servers: {} };
  const launchpad = {
    listen: [`:${httpsPort}`],
    routes: routes.map((route) => ({
      match: [{ host: [route.domain] }],
      handle: [buildHandler(route, settings)],
    })),
  };
  return { ...ports, servers: { launchpad } };
}

function buildHandler(route: Route, { closeDelay, via }: DocumentSettings): Record<string, unknown> {
  const handler = via === undefined ? balanceHere(route) : passOn(route, via);
  return {
    handler: 'reverse_proxy',
    ...handler,
    // Every change ends all tunnels; those of a route that stays get this long to move.
    ...(closeDelay ? { [closeDelayField]: '1h' } : {}),
  };
}

function balanceHere({ backends, healthPath }: Route): Record<string, unknown> {
  return {
    upstreams: backends.map((backend) => ({ dial: dialOf(backend) })),
    load_balancing: {
      selection_policy: { policy: 'round_robin' },
      retries: 3,
      try_duration: '5s',
      try_interval: '250ms',
    },
    health_checks: {
      passive: { fail_duration: '10s', max_fails: 1, unhealthy_status: [500, 502, 503, 504] },
      ...(healthPath === undefined
        ? {}
        : { active: { uri: healthPath, interval: '5s', timeout: '2s', expect_status: 2 } }),
    },
    transport: buildTransport(32),
  };
}

/**
 * No health checks: that HAProxy is down for a moment must not take a domain away, nor must a 503 that it passes on. The
 * retries are for what has no body: Caddy 2.6 cannot send one twice. It needs them only where HAProxy's socket is gone.
 */
function passOn({ domain }: Route, address: string): Record<string, unknown> {
  return {
    upstreams: [{ dial: address }],
    headers: { request: { set: { [routeHeader]: [backendName(domain)] } } },
    load_balancing: { try_duration: '5s', try_interval: '250ms' },
    transport: buildTransport(256),
  };
}

/**
 * Each change leaves the old transports with their idle connections behind, for two minutes by default: with thousands of
 * probed backends a few changes use up all descriptors. Naming one of these settings turns the other's default (32) to 2.
 */
function buildTransport(maxIdle: number): unknown {
  return { protocol: 'http', keep_alive: { idle_timeout: '3s', max_idle_conns_per_host: maxIdle } };
}

/** Nothing by default: Caddy then asks public authorities, and its own for names that they do not sign. */
function buildCertificates(caddy: CaddyConfig): Record<string, unknown> {
  const { issuer, email, acmeDirectory } = caddy;
  if (issuer === 'acme' && email === undefined && acmeDirectory === undefined) return {};
  const acme = {
    module: 'acme',
    ...(email === undefined ? {} : { email }),
    ...(acmeDirectory === undefined ? {} : { ca: acmeDirectory }),
  };
  return {
    tls: { automation: { policies: [{ issuers: [issuer === 'internal' ? { module: 'internal' } : acme] }] } },
    // Who may change the machine's trust store is for its owner to say.
    pki: { certificate_authorities: { local: { install_trust: false } } },
  };
}
