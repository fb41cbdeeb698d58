// Reads what an edge has to know: its shards, what Caddy serves, and, for what is missing, which nodes let it go on purpose.
import { createHash } from 'node:crypto';
import { fetchConfig } from '../caddy/admin.ts';
import { reeveKey, upstreamPrefix } from '../cluster/keys.ts';
import { describeError } from '../errors.ts';
import { isRecord } from '../state/shape.ts';
import { version } from '../version.ts';
import type { EdgeFacts, LiveCaddy } from './facts.ts';
import { gatherShards } from './gather-shards.ts';
import { readLiveRoutes } from './live-routes.ts';
import { mergeShards } from './merge.ts';
import { isKnown } from './plan.ts';
import { dialOf, type Route } from './route.ts';
import type { EdgeSession } from './session.ts';
import { type CheckedShard, findDoubles } from './shard.ts';

export type GatheredEdge = { facts: EdgeFacts; listing: string };

/** Throws UnavailableError where the shards cannot be read. That Caddy does not answer is a fact like others. */
export async function gatherEdge(session: EdgeSession): Promise<GatheredEdge> {
  const { edge, store, memory, ctx } = session;
  const prefix = upstreamPrefix(edge.clusterId, edge.edgeId);
  const [{ listing, shards, gone }, live] = await Promise.all([
    gatherShards(store, prefix, memory),
    readLive(session),
  ]);
  const singles = findDoubles(shards);
  const wanted = mergeShards(singles.shards);
  const facts = {
    now: ctx.clock.now(),
    balancer: session.balancer.name,
    settings: describeSettings(session),
    shards,
    wanted,
    rejected: [
      ...(gone ? [{ node: 'store', subject: prefix, reason: 'no shard is left: the last routes stay' }] : []),
      ...shards.flatMap(({ rejected }) => rejected),
      ...singles.rejected,
    ],
    live,
    draining: new Set<string>(),
    memory,
  };
  const draining = isKnown(facts) ? facts.draining : await gatherDraining(session, facts);
  return { facts: { ...facts, draining }, listing };
}

export async function readLive({ edge, ctx }: Pick<EdgeSession, 'edge' | 'ctx'>): Promise<LiveCaddy> {
  try {
    const { text, etag } = await fetchConfig(edge.caddy.admin, { signal: ctx.signal });
    return { kind: 'read', text, etag, textHash: hashText(text) };
  } catch (error) {
    return { kind: 'unreadable', error };
  }
}

export function hashText(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function describeSettings({ edge, balancer, caddy }: EdgeSession): string {
  const { name } = balancer;
  const via = name === 'haproxy' ? edge.haproxy.address : null;
  return JSON.stringify({
    version,
    balancer: name,
    via,
    caddy: edge.caddy,
    closeDelay: caddy?.closeDelay === true,
  });
}

/** Only where Caddy balances: there each backend that goes is a change of its document, and waits unless it is announced. */
async function gatherDraining(
  { balancer, edge, store, ctx }: EdgeSession,
  { live, wanted, shards }: Pick<EdgeFacts, 'live' | 'wanted' | 'shards'>,
): Promise<ReadonlySet<string>> {
  const draining = new Set<string>();
  if (balancer.name !== 'caddy' || live.kind === 'unreadable') return draining;
  for (const { node, host } of findLeft(readLiveRoutes(live.text), wanted, shards)) {
    try {
      const stored = await store.get(reeveKey(edge.clusterId, node));
      for (const port of parseDraining(stored?.text)) draining.add(dialOf({ host, port }));
    } catch (error) {
      ctx.log.debug(`cannot tell what drains on ${node}: ${describeError(error)}`);
    }
  }
  return draining;
}

/** Nodes with a backend that is in force and in no shard. */
function findLeft(
  live: readonly Route[],
  wanted: readonly Route[],
  shards: readonly CheckedShard[],
): { node: string; host: string }[] {
  const still = new Set(
    wanted.flatMap(({ domain, backends }) => backends.map((one) => `${domain} ${dialOf(one)}`)),
  );
  const hosts = new Set(
    live.flatMap(({ domain, backends }) =>
      backends.filter((one) => !still.has(`${domain} ${dialOf(one)}`)).map(({ host }) => host),
    ),
  );
  return shards.flatMap(({ node, host }) => (host !== undefined && hosts.has(host) ? [{ node, host }] : []));
}

/** Host ports that the node says are draining; none where its document is missing or damaged. */
function parseDraining(text: string | undefined): number[] {
  try {
    const raw: unknown = JSON.parse(text ?? '{}');
    const draining = isRecord(raw) ? raw['draining'] : undefined;
    if (!Array.isArray(draining)) return [];
    return draining.flatMap((one) =>
      isRecord(one) && Number.isInteger(one['hostPort']) ? [Number(one['hostPort'])] : [],
    );
  } catch {
    return [];
  }
}
