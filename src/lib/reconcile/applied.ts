// What edges report to be in force of this node's routing. It only makes a drain shorter, so that what cannot be read is no
// trouble of the tick.
import { reeveKey } from '../cluster/keys.ts';
import { describeError } from '../errors.ts';
import { isLocalStore } from '../publish/wake.ts';
import { isRecord } from '../state/shape.ts';
import { findEdgesToAsk } from './acknowledgement.ts';
import type { Facts } from './facts.ts';
import type { Session } from './session.ts';

/** Between two looks at reports that lie on this machine, in milliseconds. */
const pollMs = 100;

/** One GET an edge. A report that says nothing of us has no fingerprint; one that cannot be had is left out. */
export async function readApplied(session: Session, edges: readonly string[]): Promise<Facts['applied']> {
  const applied = new Map<string, string | undefined>();
  const readOne = async (edge: string): Promise<void> => {
    try {
      const stored = await session.store.get(reeveKey(session.cluster.clusterId, edge));
      applied.set(edge, parseApplied(stored?.text, edge, session.nodeId));
    } catch (error) {
      session.ctx.log.debug(`cannot tell what edge ${edge} has applied: ${describeError(error)}`);
    }
  };
  await Promise.all(edges.map(readOne));
  return applied;
}

/** Until an edge that a drain waits for reports something else. Never where that would cost requests, or the signal aborts. */
export async function waitForReport(session: Session, facts: Facts, signal: AbortSignal): Promise<void> {
  const edges = isLocalStore(session.cluster) ? findEdgesToAsk(facts) : [];
  while (edges.length > 0 && !signal.aborted) {
    await session.ctx.clock.sleep(pollMs, signal);
    const applied = await readApplied(session, edges);
    if (edges.some((edge) => applied.get(edge) !== facts.applied.get(edge))) return;
  }
  await new Promise(() => {});
}

/** A document that is damaged or another node's says nothing. */
function parseApplied(text: string | undefined, edge: string, nodeId: string): string | undefined {
  const document = parseRecord(text);
  if (document?.['version'] !== 1 || document['nodeId'] !== edge) return undefined;
  const report = document['edge'];
  const applied = isRecord(report) ? report['applied'] : undefined;
  const fingerprint = isRecord(applied) ? applied[nodeId] : undefined;
  return typeof fingerprint === 'string' ? fingerprint : undefined;
}

function parseRecord(text: string | undefined): Record<string, unknown> | undefined {
  try {
    const raw: unknown = JSON.parse(text ?? 'null');
    return isRecord(raw) ? raw : undefined;
  } catch {
    return undefined;
  }
}
