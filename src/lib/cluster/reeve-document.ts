// nodes/<id>/reeve.json: what reeve tells about a node beyond the fields that launch-pad's readers allow. Read by
// `deploy --wait`, by edges (which replicas are draining) and by `status --cluster`.
import { createHash } from 'node:crypto';
import { canonicalJson } from './canonical.ts';

export type ReeveDocument = {
  version: 1;
  nodeId: string;
  reeve: string;
  updatedAt: string;
  /** The desired state that the last look worked on; null where there is none. */
  desired: { updatedAt: string } | null;
  /** Nothing is left to do for that desired state. */
  converged: boolean;
  /** Services that are not as desired and why. */
  failing: { project: string; service: string; message: string }[];
  /** Backends that are leaving: out of the shard, not yet stopped. */
  draining: { domain: string; hostPort: number }[];
  /** Of an edge only. */
  edge?: EdgeReport;
};

export type EdgeReport = {
  balancer: 'caddy' | 'haproxy';
  /** Fingerprints of the shards that are in force here, by node: how a node learns that nothing is sent to what it took out. */
  applied: Readonly<Record<string, string>>;
  /** What of the shards is not served, and why. */
  rejected: readonly { node: string; subject: string; reason: string }[];
  /** Times that Caddy was found without what it had been given, as after a restart with its boot configuration. */
  repairs: number;
};

/** Over everything but `updatedAt`. */
export function reeveFingerprint(document: ReeveDocument): string {
  const { updatedAt: _, ...meaning } = document;
  return createHash('sha256').update(canonicalJson(meaning)).digest('hex');
}
