// What an edge is to serve, and whether Caddy has to be told. Pure.
import { createHash } from 'node:crypto';
import type { EdgeFacts, Glance } from './facts.ts';
import { readLiveRoutes } from './live-routes.ts';
import { buildRoute } from './merge.ts';
import { type Holds, planHolds } from './plan-holds.ts';
import type { Route } from './route.ts';

export type EdgePlan = {
  /** What is to be in force. */
  routes: readonly Route[];
  missingSince: Holds['missingSince'];
  /** What the document is made of, as one hash: the same inputs make the same document. */
  inputs: string;
  /** `no`: Caddy has the document already, as far as a hash tells. `ask`: build it and compare. */
  push: 'no' | 'ask';
  /** Fingerprints that nothing is kept against, by node: to be acknowledged once the routes are in force. */
  acknowledgeable: Readonly<Record<string, string>>;
};

/** All is as a tick has left it that had nothing to do: what the shards say, and what Caddy and the balancer serve. */
export function isSettled(glance: Glance): boolean {
  const { memory, stamp, gone } = glance;
  if (gone || stamp === undefined || memory.settled?.stamp !== stamp) return false;
  return isDocumentKnown(glance);
}

/** Caddy has exactly what these shards made of it last, so that nothing in force can be missing in them. */
export function isDocumentKnown(glance: Glance): boolean {
  return hasDocument(glance, hashInputs(glance, []));
}

export function planEdge(facts: EdgeFacts): EdgePlan {
  const holds = planHolds({
    now: facts.now,
    wanted: facts.wanted,
    live: isDocumentKnown(facts) ? [] : liveRoutes(facts),
    unit: facts.balancer === 'caddy' ? 'backends' : 'domains',
    draining: facts.draining,
    missingSince: facts.memory.missingSince,
  });
  const inputs = hashInputs(facts, Object.keys(holds.missingSince));
  // What is kept of a node that does not tell its address could be anybody's.
  const isHeld = (host: string | undefined): boolean =>
    host === undefined ? holds.heldHosts.size > 0 : holds.heldHosts.has(host);
  const acknowledgeable = facts.shards.filter(({ host, fingerprint }) => fingerprint !== '' && !isHeld(host));
  return {
    routes: holds.routes,
    missingSince: holds.missingSince,
    inputs,
    push: hasDocument(facts, inputs) ? 'no' : 'ask',
    acknowledgeable: Object.fromEntries(acknowledgeable.map(({ node, fingerprint }) => [node, fingerprint])),
  };
}

function hasDocument({ live, memory }: Glance, inputs: string): boolean {
  const { settled } = memory;
  return live.kind === 'read' && settled?.inputs === inputs && settled.textHash === live.textHash;
}

function liveRoutes({ live, healthPaths }: EdgeFacts): readonly Route[] {
  if (live.kind === 'unreadable') return [];
  return readLiveRoutes(live.text).map((route) => {
    const healthPath = route.healthPath ?? healthPaths.get(route.domain);
    return buildRoute(route.domain, route.backends, healthPath);
  });
}

function hashInputs({ contents, settings }: Glance, held: readonly string[]): string {
  const text = [settings, contents, ...held.toSorted()].join('\n');
  return createHash('sha256').update(text).digest('hex');
}
