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
};

/** Over everything but `updatedAt`. */
export function reeveFingerprint(document: ReeveDocument): string {
  const { updatedAt: _, ...meaning } = document;
  return createHash('sha256').update(canonicalJson(meaning)).digest('hex');
}
