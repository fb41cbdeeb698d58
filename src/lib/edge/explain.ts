// Why Caddy is given another document, and HAProxy another file, in words that name what is different. Pure.
import { compareBytewise } from '../cluster/canonical.ts';
import { isRecord } from '../state/shape.ts';
import type { EdgeFacts } from './facts.ts';
import { readLiveRoutes } from './live-routes.ts';
import type { Route } from './route.ts';

export type PushFacts = Pick<EdgeFacts, 'live' | 'balancer'> & {
  memory: Pick<EdgeFacts['memory'], 'settled' | 'lastReloadAt'>;
};

/** `routes` are to be in force. */
export function explainPush(facts: PushFacts, routes: readonly Route[]): string {
  const { live, balancer, memory } = facts;
  if (live.kind === 'unreadable') return 'its configuration cannot be read';
  if (isLost(facts)) return explainLoss(live.text);
  if (memory.lastReloadAt === null) return 'the first look';
  const before = readLiveRoutes(live.text);
  const served = balancer === 'haproxy' ? routes : routes.filter(({ backends }) => backends.length > 0);
  const changed = explainDomains(
    before.map(({ domain }) => domain),
    served.map(({ domain }) => domain),
  );
  return changed ?? explainBackends(before, served) ?? 'settings have changed';
}

/** As after a restart with its boot configuration, or another writer. */
export function isLost({ live, memory }: PushFacts): boolean {
  return live.kind === 'read' && memory.settled !== null && memory.settled.textHash !== live.textHash;
}

/** `a.test added (and 2 more), b.test removed`; undefined where they are the same. */
export function explainDomains(before: readonly string[], after: readonly string[]): string | undefined {
  const [had, has] = [new Set(before), new Set(after)];
  const parts = [
    { names: after.filter((domain) => !had.has(domain)), what: 'added' },
    { names: before.filter((domain) => !has.has(domain)), what: 'removed' },
  ].filter(({ names }) => names.length > 0);
  if (parts.length === 0) return undefined;
  return parts.map(({ names, what }) => `${firstOf(names)} ${what}${countMore(names)}`).join(', ');
}

/** Undefined where none is different. */
export function explainProbes(
  before: ReadonlyMap<string, string>,
  routes: readonly Route[],
): string | undefined {
  const changed = routes.filter(({ domain, healthPath }) => before.get(domain) !== healthPath);
  const names = changed.map(({ domain }) => domain);
  return names.length === 0
    ? undefined
    : `the health check of ${firstOf(names)} has changed${countMore(names)}`;
}

/** Where our own server is still there, somebody has changed a part; a Caddy that has just started may have nothing. */
function explainLoss(text: string): string {
  const servers = readServers(text);
  if (servers.includes('launchpad')) return 'another writer has changed it';
  return servers.length === 0
    ? 'it no longer has what it was given'
    : 'it has something else than it was given: of another writer, or its own file';
}

function readServers(text: string): string[] {
  try {
    let at: unknown = JSON.parse(text);
    for (const name of ['apps', 'http', 'servers']) at = isRecord(at) ? at[name] : undefined;
    return isRecord(at) ? Object.keys(at) : [];
  } catch {
    return [];
  }
}

/** A domain that was passed on to HAProxy until now is none whose backends have changed. */
function explainBackends(before: readonly Route[], after: readonly Route[]): string | undefined {
  const routes = new Map(after.map((route) => [route.domain, route]));
  const known = before.filter(({ backends }) => backends.length > 0);
  const changed = known.filter((route) => isDifferent(route, routes.get(route.domain)));
  const names = changed.map(({ domain }) => domain);
  return names.length === 0 ? undefined : `backends of ${firstOf(names)} have changed${countMore(names)}`;
}

function isDifferent(before: Route, after: Route | undefined): boolean {
  return JSON.stringify(before) !== JSON.stringify(after);
}

function firstOf(names: readonly string[]): string {
  return names.toSorted(compareBytewise)[0] ?? '';
}

function countMore({ length }: readonly string[]): string {
  return length > 1 ? ` (and ${length - 1} more)` : '';
}
