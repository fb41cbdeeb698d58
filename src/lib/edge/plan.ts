// What an edge is to serve, and whether Caddy has to be told. Pure.
import { createHash } from 'node:crypto';
import type { EdgeFacts } from './facts.ts';
import { readLiveRoutes } from './live-routes.ts';
import { type Holds, planHolds } from './plan-holds.ts';
import type { Route } from './route.ts';

export type EdgePlan = {
  /** What is to be in force. */
  routes: readonly Route[];
  missingSince: Holds['missingSince'];
  /** What the document is made of, as one hash: the same inputs make the same document. */
  inputs: string;
  /** `no`: it is the document already, as far as a hash tells. `ask`: build it and compare. */
  push: 'no' | 'ask';
  /** Fingerprints that nothing is kept against, by node: to be acknowledged once the routes are in force. */
  acknowledgeable: Readonly<Record<string, string>>;
};

export function planEdge(facts: EdgeFacts): EdgePlan {
  const { memory, live } = facts;
  const holds = planHolds({
    now: facts.now,
    wanted: facts.wanted,
    live: isKnown(facts) ? [] : liveRoutes(facts),
    unit: facts.balancer === 'caddy' ? 'backends' : 'domains',
    draining: facts.draining,
    missingSince: memory.missingSince,
  });
  const inputs = hashInputs(facts, Object.keys(holds.missingSince));
  const isSame =
    live.kind === 'read' && memory.known?.inputs === inputs && memory.known.textHash === live.textHash;
  const acknowledgeable = facts.shards.filter(
    ({ host, fingerprint }) => fingerprint !== '' && (host === undefined || !holds.heldHosts.has(host)),
  );
  return {
    routes: holds.routes,
    missingSince: holds.missingSince,
    inputs,
    push: isSame ? 'no' : 'ask',
    acknowledgeable: Object.fromEntries(acknowledgeable.map(({ node, fingerprint }) => [node, fingerprint])),
  };
}

/** Caddy has exactly what these shards made of it last, so that nothing can be missing. */
export function isKnown(facts: Pick<EdgeFacts, 'live' | 'memory' | 'shards' | 'settings'>): boolean {
  const { live, memory } = facts;
  return (
    live.kind === 'read' &&
    memory.known?.textHash === live.textHash &&
    memory.known.inputs === hashInputs(facts, [])
  );
}

function liveRoutes({ live }: EdgeFacts): readonly Route[] {
  return live.kind === 'read' ? readLiveRoutes(live.text) : [];
}

function hashInputs(
  { shards, settings }: Pick<EdgeFacts, 'shards' | 'settings'>,
  held: readonly string[],
): string {
  const contents = shards.map(({ node, fingerprint, etag }) => `${node} ${fingerprint || etag}`);
  const text = [settings, ...contents, ...held.toSorted()].join('\n');
  return createHash('sha256').update(text).digest('hex');
}
