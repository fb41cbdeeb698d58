// Telling the edges of the routing: which shards have to be written, and writing them.
import { decideWrite, shardFingerprint, sortBackends } from '../cluster/fingerprint.ts';
import { upstreamKey } from '../cluster/keys.ts';
import { renderDocument, type ShardBackend, type UpstreamShard } from '../cluster/wire.ts';
import { describeError } from '../errors.ts';
import { wakeTicks } from '../publish/wake.ts';
import type { Facts } from './facts.ts';
import { findUnreadPorts, nextPublished, planShards, type ShardWrite } from './plan-routing.ts';
import type { Session } from './session.ts';

/** Shards that have to be written, and why others of them could not be made. */
export type PreparedRouting = { writes: readonly ShardWrite[]; errors: readonly string[] };

export type PublishResult = {
  /** Every edge has the routing. */
  published: boolean;
  errors: readonly string[];
};

/**
 * Each edge's shard that has changed or whose last write is old. One edge's failure leaves the others. Without a desired
 * state nothing is known of routes: what the edges have stays.
 */
export async function prepareRouting(session: Session, facts: Facts): Promise<PreparedRouting> {
  if (facts.desired.kind === 'none') return { writes: [], errors: [] };
  const writes: ShardWrite[] = [];
  const errors: string[] = [];
  for (const [edge, planned] of planShards(facts)) {
    try {
      const shard = await keepUnreadRoutes(session, facts, edge, planned);
      const fingerprint = shardFingerprint(shard);
      const { livenessMs } = session.cluster.intervals;
      const decision = decideWrite(facts.shards[edge], fingerprint, facts.now, livenessMs);
      logDecision(session, edge, decision);
      if (decision !== 'skip') writes.push({ edge, shard, fingerprint, decision });
    } catch (error) {
      errors.push(describeFailure(edge, error));
    }
  }
  return { writes, errors };
}

export async function publishRouting(
  session: Session,
  facts: Facts,
  { writes, errors }: PreparedRouting,
): Promise<PublishResult> {
  const failures = [...errors];
  let isChanged = false;
  for (const write of writes) {
    try {
      await session.store.put(shardKey(session, write.edge), renderDocument(write.shard));
      if (write.decision !== 'liveness') isChanged = true;
      const record = nextPublished(facts, write);
      await session.shards.update(({ edges }) => ({ edges: { ...edges, [write.edge]: record } }));
    } catch (error) {
      failures.push(describeFailure(write.edge, error));
    }
  }
  if (isChanged) await wakeTicks(session.ctx, session.cluster, ['edge']);
  return { published: failures.length === 0, errors: failures };
}

function describeFailure(edge: string, error: unknown): string {
  return `cannot publish the routing to edge ${edge}: ${describeError(error)}`;
}

function shardKey(session: Session, edge: string): string {
  return upstreamKey(session.cluster.clusterId, edge, session.nodeId);
}

/** A rejected service whose route cannot be read keeps the one that the edge has: what runs of it still serves. */
async function keepUnreadRoutes(
  session: Session,
  facts: Facts,
  edge: string,
  shard: UpstreamShard,
): Promise<UpstreamShard> {
  const ports = findUnreadPorts(facts);
  if (ports.size === 0) return shard;
  const stored = await session.store.get(shardKey(session, edge));
  const kept = parseBackends(stored?.text).filter(({ hostPort }) => ports.has(hostPort));
  return { ...shard, backends: sortBackends([...shard.backends, ...kept]) };
}

/** The backends of a shard of our own; none where it is damaged. */
function parseBackends(text: string | undefined): ShardBackend[] {
  if (text === undefined) return [];
  try {
    const { backends } = JSON.parse(text) as Partial<UpstreamShard>;
    return Array.isArray(backends) ? backends : [];
  } catch {
    return [];
  }
}

function logDecision(session: Session, edge: string, decision: string): void {
  if (!session.cluster.debugStore) return;
  session.ctx.log.info(decision === 'skip' ? 'shard skipped' : 'shard written', { edge, why: decision });
}
