// What is kept for a while although no shard has it any more, so that a flap is not a change. Pure.
import { buildRoute } from './merge.ts';
import { type Backend, dialOf, type Route } from './route.ts';

/** A removal that nobody has announced counts when it has lasted this long. */
const holdMs = 30_000;

export type HoldInput = {
  now: Date;
  /** What the shards ask for. */
  wanted: readonly Route[];
  /** What is in force now. */
  live: readonly Route[];
  /** `backends`: Caddy balances, so each backend that goes is a change of its document. `domains`: only a domain is. */
  unit: 'backends' | 'domains';
  /** Addresses (`HOST:PORT`) that their nodes say are draining. */
  draining: ReadonlySet<string>;
  /** Since when something has been missing, by subject. */
  missingSince: Readonly<Record<string, string>>;
};

export type Holds = {
  /** What is to be in force. */
  routes: readonly Route[];
  missingSince: Readonly<Record<string, string>>;
  /** Hosts of backends that are kept: their nodes' shards are not yet in force. */
  heldHosts: ReadonlySet<string>;
};

export function planHolds(input: HoldInput): Holds {
  const routes = new Map(input.wanted.map((route) => [route.domain, route]));
  const missingSince: Record<string, string> = {};
  const heldHosts = new Set<string>();
  const isHeld = (subject: string): boolean => {
    const since = sinceOf(input, subject);
    if (input.now.getTime() - since.getTime() >= holdMs) return false;
    missingSince[subject] = since.toISOString();
    return true;
  };
  const taken = new Set(input.wanted.flatMap(({ backends }) => backends.map(dialOf)));
  const isGone = (dial: string): boolean => taken.has(dial) || input.draining.has(dial);
  for (const live of input.live) {
    const wanted = routes.get(live.domain);
    const missing = input.unit === 'backends' ? findMissing(live, isGone) : [];
    const kept = missing.filter(({ subject }) => isHeld(subject));
    for (const { backend } of kept) heldHosts.add(backend.host);
    const keepsDomain = input.unit === 'domains' && wanted === undefined && isHeld(live.domain);
    if (kept.length === 0 && !keepsDomain) continue;
    const backends = [...(wanted?.backends ?? []), ...kept.map(({ backend }) => backend)];
    routes.set(live.domain, buildRoute(live.domain, backends, (wanted ?? live).healthPath));
  }
  return { routes: sortRoutes([...routes.values()]), missingSince, heldHosts };
}

/** One that lies ahead of a clock that was set back counts from now. */
function sinceOf({ now, missingSince }: HoldInput, subject: string): Date {
  const since = Date.parse(missingSince[subject] ?? '');
  return Number.isNaN(since) || since > now.getTime() ? now : new Date(since);
}

/** An address that serves a domain by now is not kept for another one: a port may have been given to another service. */
function findMissing(
  { domain, backends }: Route,
  isGone: (dial: string) => boolean,
): { subject: string; backend: Backend }[] {
  return backends
    .filter((backend) => !isGone(dialOf(backend)))
    .map((backend) => ({ subject: `${domain} ${dialOf(backend)}`, backend }));
}

function sortRoutes(routes: Route[]): Route[] {
  return routes.sort((left, right) => (left.domain < right.domain ? -1 : 1));
}
