// Whether Caddy's text and a document mean the same, member by member: two documents with thousands of routes are compared in
// each tick that has something to do, and neither is copied for it. Pure.
import { canonicalJson } from '../cluster/canonical.ts';
import { isRecord } from '../state/shape.ts';
import type { CaddyDocument } from './balancer.ts';

/**
 * The order of keys never counts. The order of a list counts where Caddy goes by it: handlers, policies, and an exact name
 * before or after a wildcard; it does not count among upstreams, origins, and routes of the same kind, no two of which match
 * the same request.
 */
export function isSameDocument(liveText: string, document: CaddyDocument): boolean {
  try {
    return isAlike(JSON.parse(liveText), document, '');
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

const unorderedLists = new Set(['upstreams', 'origins', 'listen', 'host', 'unhealthy_status']);

/** `name` is the key under which both stand. */
function isAlike(left: unknown, right: unknown, name: string): boolean {
  if (Array.isArray(left) && Array.isArray(right)) return isAlikeList(left, right, name);
  if (!isRecord(left) || !isRecord(right)) return left === right;
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && isAlike(left[key], right[key], key))
  );
}

function isAlikeList(left: readonly unknown[], right: readonly unknown[], name: string): boolean {
  if (left.length !== right.length) return false;
  if (left.every((item, index) => isAlike(item, right[index], ''))) return true;
  if (name === 'routes') return areAlikeRoutes(left, right);
  return unorderedLists.has(name) && sortItems(left) === sortItems(right);
}

function sortItems(items: readonly unknown[]): string {
  return items.map(canonicalJson).sort().join('\n');
}

/** Neighbours that are all exact names, or all wildcards, may change places; what stands before what else may not. */
function areAlikeRoutes(left: readonly unknown[], right: readonly unknown[]): boolean {
  let [start, end] = [0, 0];
  for (; start < left.length; start = end) {
    const { kind } = describeRoute(left[start]);
    end = endOfKind(left, start, kind);
    if (end !== endOfKind(right, start, kind)) return false;
    if (!areAlikeOfKind(left.slice(start, end), right.slice(start, end), kind)) return false;
  }
  return true;
}

type Kind = 'exact' | 'wildcard' | 'other';

function endOfKind(routes: readonly unknown[], start: number, kind: Kind): number {
  const other = routes.findIndex((route, index) => index >= start && describeRoute(route).kind !== kind);
  return other < 0 ? routes.length : other;
}

function areAlikeOfKind(left: readonly unknown[], right: readonly unknown[], kind: Kind): boolean {
  if (kind === 'other') return left.every((route, index) => isAlike(route, right[index], ''));
  const byHost = new Map(right.map((route) => [describeRoute(route).host, route]));
  return (
    byHost.size === right.length &&
    left.every((route) => isAlike(route, byHost.get(describeRoute(route).host), ''))
  );
}

/** `other`: it matches something else than one name. */
function describeRoute(route: unknown): { kind: Kind; host: string } {
  const matchers = isRecord(route) && Array.isArray(route['match']) ? (route['match'] as unknown[]) : [];
  const [matcher] = matchers;
  const hosts = isRecord(matcher) && Array.isArray(matcher['host']) ? (matcher['host'] as unknown[]) : [];
  const [host] = hosts;
  if (matchers.length !== 1 || hosts.length !== 1 || typeof host !== 'string')
    return { kind: 'other', host: '' };
  return { kind: host.startsWith('*') ? 'wildcard' : 'exact', host };
}
