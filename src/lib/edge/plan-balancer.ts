// What brings HAProxy to the routes. The file comes first, so that a start at any moment comes up with what is desired. Pure.
import type { ServerState, ServerStates } from '../haproxy/parse.ts';
import type { BalancerChange } from './balancer.ts';
import { serverName } from './balancer-file.ts';
import { explainDomains, explainProbes } from './explain.ts';
import { type Backend, backendName, dialOf, domainOf, type Route } from './route.ts';

/** A server as HAProxy is told of it. */
export type ServerTarget = { backend: string; server: string; dial: string };

type Step<Action> = Omit<BalancerChange, 'action'> & { action: Action };
export type FileStep = Step<'write' | 'reload'>;
export type ServerStep = Step<'add' | 'ready' | 'drain' | 'delete'> & { target: ServerTarget };
export type BalancerStep = FileStep | ServerStep;

export type BalancerFacts = {
  routes: readonly Route[];
  /** Of the file for these routes. */
  structure: string;
  /** The file on disk is the one for these routes. */
  isFileCurrent: boolean;
  live: { structure: string | undefined; servers: ServerStates };
  /** Paths of the probes by domain, in the file on disk. */
  healthPaths: ReadonlyMap<string, string>;
  /** Servers with connections, as `BACKEND/SERVER`; of those that are drained it must be known. */
  busy: ReadonlySet<string>;
};

export function planBalancer(facts: BalancerFacts): BalancerStep[] {
  const { structure, live, isFileCurrent } = facts;
  if (live.structure !== structure) {
    const reason = explainStructure(facts);
    return [...planWrite(isFileCurrent, reason), { action: 'reload', subject: 'haproxy', reason }];
  }
  const steps = planServers(facts);
  const reason = steps.length === 0 ? 'it is not as it was written' : 'its servers have changed';
  return [...planWrite(isFileCurrent, reason), ...steps];
}

/** By its servers: HAProxy does not tell of a domain that has none. */
function explainStructure({ routes, live, isFileCurrent, healthPaths }: BalancerFacts): string {
  if (live.structure === undefined) return 'it runs with another file';
  const served = routes.filter(({ backends }) => backends.length > 0);
  const domains = explainDomains(
    [...live.servers.keys()].map(domainOf).filter((domain) => !isKept(domain, routes)),
    served.map(({ domain }) => domain),
  );
  if (domains !== undefined) return domains;
  // What the file was before, nobody knows.
  if (isFileCurrent) return 'it runs with an earlier file';
  return explainProbes(healthPaths, routes) ?? 'its settings have changed';
}

/** It has no backend any more, and stays for a while. */
function isKept(domain: string, routes: readonly Route[]): boolean {
  return routes.some((route) => route.domain === domain && route.backends.length === 0);
}

/** Where a reload failed: what the running process can be given all the same, domain by domain that has servers there. */
export function planWithoutReload(facts: BalancerFacts): ServerStep[] {
  const { structure, servers } = facts.live;
  if (structure === undefined) return [];
  return planServers({
    ...facts,
    routes: facts.routes.filter(({ domain }) => servers.has(backendName(domain))),
  });
}

/** New ones first, so that no domain is without a server in between. */
function planServers(facts: BalancerFacts): ServerStep[] {
  const steps = facts.routes.map((route) => planRoute(route, facts));
  const joins = steps.flatMap(({ joining }) => joining);
  const leaves = steps.flatMap(({ leaving }) => leaving);
  return [...joins, ...leaves];
}

/** Servers are drained that no node serves: to plan, it must be known which of them are still in use. */
export function hasDrained({ routes, live }: Pick<BalancerFacts, 'routes' | 'live'>): boolean {
  return routes.some((route) => {
    const left = leavingServers(route, live.servers.get(backendName(route.domain)) ?? new Map());
    return left.some(([, state]) => state === 'drain' || state === 'maint');
  });
}

function planWrite(isFileCurrent: boolean, reason: string): FileStep[] {
  return isFileCurrent ? [] : [{ action: 'write', subject: 'haproxy.cfg', reason }];
}

function planRoute(
  route: Route,
  { live, busy }: BalancerFacts,
): { joining: ServerStep[]; leaving: ServerStep[] } {
  const servers = live.servers.get(backendName(route.domain)) ?? new Map<string, ServerState>();
  const joining = route.backends.flatMap((backend) => planJoin(route, backend, servers));
  const leaving = leavingServers(route, servers).flatMap(([server, state]) =>
    planLeave(buildStep(route, server, dialOfServer(server)), state, busy),
  );
  return { joining, leaving };
}

type BareStep = Pick<ServerStep, 'subject' | 'target'>;

function planJoin(route: Route, backend: Backend, servers: ReadonlyMap<string, ServerState>): ServerStep[] {
  const state = servers.get(serverName(backend));
  if (state === 'ready') return [];
  const step = buildStep(route, serverName(backend), dialOf(backend));
  if (state === undefined) return [{ ...step, action: 'add', reason: 'a node serves it' }];
  // By whom cannot be told: a server that has just been added begins switched off, too.
  const reason = whyNotReady[state];
  return [{ ...step, action: 'ready', reason }];
}

const whyNotReady: Readonly<Record<Exclude<ServerState, 'ready'>, string>> = {
  drain: 'a node serves it again, and it is drained',
  maint: 'it is switched off',
  altered: 'somebody has given it another address or weight',
};

/** Drained at a first look, deleted at a later one that finds it without connections: nobody's tunnel is cut. */
function planLeave(step: BareStep, state: ServerState, busy: ReadonlySet<string>): ServerStep[] {
  if (state === 'ready' || state === 'altered')
    return [{ ...step, action: 'drain', reason: 'no node serves it any more' }];
  const { backend, server } = step.target;
  return busy.has(`${backend}/${server}`)
    ? []
    : [{ ...step, action: 'delete', reason: 'nothing uses it any more' }];
}

function leavingServers(
  { backends }: Route,
  servers: ReadonlyMap<string, ServerState>,
): [server: string, state: ServerState][] {
  const desired = new Set(backends.map(serverName));
  return [...servers].filter(([server]) => !desired.has(server));
}

function buildStep({ domain }: Route, server: string, dial: string): BareStep {
  return { subject: `${domain} ${dial}`, target: { backend: backendName(domain), server, dial } };
}

/** By its name alone where that is none of ours: somebody has added it by hand. */
export function dialOfServer(server: string): string {
  const [, host = '', port] = /^(.+):(\d+)$/.exec(server) ?? [];
  return port === undefined ? server : dialOf({ host, port: Number(port) });
}
