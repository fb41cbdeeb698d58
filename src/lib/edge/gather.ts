// Reads what an edge has to know: its shards, what Caddy serves, and, for what is missing, which nodes let it go on purpose.
import { fetchConfig } from '../caddy/admin.ts';
import { reeveKey, upstreamPrefix } from '../cluster/keys.ts';
import { describeError, UnavailableError } from '../errors.ts';
import { isRecord } from '../state/shape.ts';
import type { Store } from '../store/store.ts';
import { formatDuration } from '../time.ts';
import { version } from '../version.ts';
import type { EdgeFacts, Glance, LiveCaddy } from './facts.ts';
import { listShards, type ShardList } from './gather-shards.ts';
import { readLiveRoutes } from './live-routes.ts';
import { readShards } from './memory.ts';
import { mergeShards } from './merge.ts';
import { isDocumentKnown } from './plan.ts';
import { hashConfigText } from './push.ts';
import { dialOf, type Route } from './route.ts';
import type { EdgeSession } from './session.ts';
import { type CheckedShard, findDoubles, type Rejection } from './shard.ts';

export type Glanced = { glance: Glance; list: ShardList };

/** Asks all three at once. Throws UnavailableError where the shards cannot be read; that others do not answer is a fact. */
export async function glanceAtEdge(session: EdgeSession): Promise<Glanced> {
  const { edge, store, memory, ctx, balancer } = session;
  const shardMemory = { known: memory, readShards: () => readShards(ctx) };
  const [list, live, stamp] = await Promise.all([
    requireAnswer(store, listShards(store, upstreamPrefix(edge.clusterId, edge.edgeId), shardMemory)),
    readLive(session),
    balancer.fetchStamp(),
  ]);
  const { contents, gone } = list;
  const glance = {
    now: ctx.clock.now(),
    settings: describeSettings(session),
    contents,
    gone,
    live,
    stamp,
    memory,
  };
  return { glance, list };
}

export async function gatherEdge(session: EdgeSession, { glance, list }: Glanced): Promise<EdgeFacts> {
  const { shards, isRemembered } = await requireAnswer(session.store, list.read());
  const singles = findDoubles(shards);
  const wanted = mergeShards(singles.shards);
  const rejected = [
    ...(glance.gone ? [noShards] : []),
    ...shards.flatMap((shard) => shard.rejected),
    ...singles.rejected,
  ];
  const facts = { ...glance, balancer: session.balancer.name, shards, isRemembered, wanted, rejected };
  if (isDocumentKnown(glance)) return { ...facts, healthPaths: new Map(), draining: new Set() };
  const healthPaths = await session.balancer.readHealthPaths();
  return { ...facts, healthPaths, draining: await gatherDraining(session, facts) };
}

/** For a list with all that is fetched from it. */
const storeDeadlineMs = 30_000;

/** A directory on a network may never answer. The unit's own deadline then ends the process, which has said why by then. */
async function requireAnswer<T>(store: Store, answer: Promise<T>): Promise<T> {
  const late = new Promise<never>((_, reject) => {
    const cause = `no answer within ${formatDuration(storeDeadlineMs)}`;
    const error = new UnavailableError(`cannot read from ${store.url}: ${cause}`, { code: 'deadline' });
    AbortSignal.timeout(storeDeadlineMs).addEventListener('abort', () => reject(error));
  });
  return await Promise.race([answer, late]);
}

const noShards: Rejection = {
  node: 'store',
  subject: 'upstream/',
  reason: 'no shard is left: the last routes stay',
};

async function readLive({ edge, ctx }: EdgeSession): Promise<LiveCaddy> {
  try {
    const { text, etag } = await fetchConfig(edge.caddy.admin, { signal: ctx.signal });
    return { kind: 'read', text, etag, textHash: hashConfigText(text) };
  } catch (error) {
    return { kind: 'unreadable', error };
  }
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
  const ask = async ({ node, host }: LeftNode): Promise<void> => {
    try {
      const stored = await store.get(reeveKey(edge.clusterId, node));
      for (const port of parseDraining(stored?.text, node)) draining.add(dialOf({ host, port }));
    } catch (error) {
      ctx.log.debug(`cannot tell what drains on ${node}: ${describeError(error)}`);
    }
  };
  const asked = Promise.all(findLeft(readLiveRoutes(live.text), wanted, shards).map(ask));
  // All within one deadline: what has not been told by then waits as if nobody had announced it.
  await requireAnswer(store, asked).catch((error: unknown) => ctx.log.debug(describeError(error)));
  return draining;
}

type LeftNode = { node: string; host: string };

/** Nodes with a backend that is in force and in no shard. */
function findLeft(
  live: readonly Route[],
  wanted: readonly Route[],
  shards: readonly CheckedShard[],
): LeftNode[] {
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

/** Host ports that the node says are draining; none where its document is missing, damaged or another's. */
function parseDraining(text: string | undefined, node: string): number[] {
  try {
    const raw: unknown = JSON.parse(text ?? '{}');
    const draining = isRecord(raw) && raw['nodeId'] === node ? raw['draining'] : undefined;
    if (!Array.isArray(draining)) return [];
    return draining.flatMap((one) =>
      isRecord(one) && Number.isInteger(one['hostPort']) ? [Number(one['hostPort'])] : [],
    );
  } catch {
    return [];
  }
}
