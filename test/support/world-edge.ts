// The routing of a node in memory and the edge that reads it: published as the real thing is, applied when the test says so.
import { decideWrite, shardFingerprint } from '../../src/lib/cluster/fingerprint.ts';
import type { UpstreamShard } from '../../src/lib/cluster/wire.ts';
import { findEdgesToAsk } from '../../src/lib/reconcile/acknowledgement.ts';
import type { Facts, PublishedShards, Replica, ServiceRecord } from '../../src/lib/reconcile/facts.ts';
import { nextPublished, planShards } from '../../src/lib/reconcile/plan-routing.ts';

export class WorldEdge {
  published: PublishedShards = {};
  /** What the edge's report says, by edge. */
  applied = new Map<string, string>();
  /** Ports that requests are sent to, by edge. */
  inForce = new Map<string, readonly number[]>();
  /** Its report cannot be read. */
  unreadable = false;
  private documents = new Map<string, UpstreamShard>();

  publish(facts: Facts): void {
    if (facts.desired.kind === 'none') return;
    for (const [edge, shard] of planShards(facts)) {
      const fingerprint = shardFingerprint(shard);
      const decision = decideWrite(facts.shards[edge], fingerprint, facts.now, 30_000);
      if (decision === 'skip') continue;
      this.documents.set(edge, shard);
      const record = nextPublished(facts, { edge, shard, fingerprint, decision });
      this.published = { ...this.published, [edge]: record };
    }
  }

  /** What those say that are asked. */
  answer(services: Readonly<Record<string, ServiceRecord>>, replicas: readonly Replica[]): Facts['applied'] {
    if (this.unreadable) return new Map();
    const asked = findEdgesToAsk({ record: { services }, replicas, shards: this.published });
    return new Map(asked.map((edge) => [edge, this.applied.get(edge)]));
  }

  /** The edge reads its shard and acts on it; the report follows. */
  apply(edge = 'edge-1'): void {
    this.applyInSilence(edge);
    const fingerprint = this.published[edge]?.fingerprint;
    if (fingerprint !== undefined) this.applied.set(edge, fingerprint);
  }

  /** As `apply`, with a report that cannot be written. */
  applyInSilence(edge = 'edge-1'): void {
    const backends = this.documents.get(edge)?.backends ?? [];
    this.inForce.set(
      edge,
      backends.map(({ hostPort }) => hostPort),
    );
  }
}
