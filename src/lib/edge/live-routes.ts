// The routes in force, read off Caddy's own document: what it serves now is asked of it, not remembered. Pure.
import { isRecord } from '../state/shape.ts';
import { routeHeader } from './caddy-document.ts';
import { buildRoute } from './merge.ts';
import { type Backend, isRoutable, type Route } from './route.ts';
import { isProbePath } from './shard.ts';

/** Routes of our server in Caddy's document. What somebody else has put there is left out. */
export function readLiveRoutes(text: string): Route[] {
  const routes = lookUp(parse(text), ['apps', 'http', 'servers', 'launchpad', 'routes']);
  return Array.isArray(routes) ? routes.flatMap(readRoute) : [];
}

function readRoute(raw: unknown): Route[] {
  const hosts = lookUp(first(lookUp(raw, ['match'])), ['host']);
  const handler = first(lookUp(raw, ['handle']));
  const upstreams = lookUp(handler, ['upstreams']);
  if (!Array.isArray(hosts) || !Array.isArray(upstreams)) return [];
  // Passed on to HAProxy, whose address is nobody's backend.
  const isPassedOn = lookUp(handler, ['headers', 'request', 'set', routeHeader]) !== undefined;
  const backends = isPassedOn ? [] : upstreams.flatMap((upstream) => parseDial(lookUp(upstream, ['dial'])));
  const uri = lookUp(handler, ['health_checks', 'active', 'uri']);
  const healthPath = typeof uri === 'string' && isProbePath(uri) ? uri : undefined;
  return hosts.filter(isServable).map((host) => buildRoute(host, backends, healthPath));
}

/** A name that no shard could ask for is another writer's, and would not do as a name in HAProxy's file. */
function isServable(host: unknown): host is string {
  return typeof host === 'string' && host === host.toLowerCase() && isRoutable(host);
}

function parseDial(dial: unknown): Backend[] {
  if (typeof dial !== 'string') return [];
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(dial) ?? [];
  const host = bracketed ?? plain;
  return host === undefined ? [] : [{ host, port: Number(port) }];
}

function lookUp(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, name) => (isRecord(at) ? at[name] : undefined), value);
}

function first(value: unknown): unknown {
  return Array.isArray(value) ? value[0] : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
