// Every node of the cluster as its own documents in the store tell it. Read-only, at most two requests a node.
import { reeveKey, statusKey } from '../cluster/keys.ts';
import type { ReeveDocument } from '../cluster/reeve-document.ts';
import type { NodeStatus } from '../cluster/wire.ts';
import type { ClusterConfig } from '../config/config.ts';
import { staleWindowMs } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { describeError } from '../errors.ts';
import type { Outcome } from '../outcome.ts';
import { renderTable } from '../report/table.ts';
import { isRecord } from '../state/shape.ts';
import { listNodes } from '../store/nodes.ts';
import { openStore } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import { ago } from './node.ts';

type NodeRow = {
  nodeId: string;
  /** Milliseconds since the node was last seen; undefined if it never was. */
  ageMs: number | undefined;
  stale: boolean;
  status: NodeStatus | undefined;
  converged: boolean | undefined;
  error: string | undefined;
};

/** At most this many requests are in flight. */
const parallel = 50;

/** `failed` (exit 1) if a node is stale, unreadable, or has a service in error. */
export async function showCluster(ctx: Context, cluster: ClusterConfig): Promise<Outcome> {
  const store = await openStore(cluster.store, { signal: ctx.signal });
  const nodeIds = await listNodes(store, cluster.clusterId);
  const rows: NodeRow[] = [];
  for (let start = 0; start < nodeIds.length; start += parallel) {
    const batch = nodeIds.slice(start, start + parallel);
    rows.push(...(await Promise.all(batch.map((nodeId) => readNode(ctx, store, cluster.clusterId, nodeId)))));
  }
  const wrong = rows.some(
    (row) =>
      row.stale ||
      row.error !== undefined ||
      row.status?.services.some(({ state }) => state === 'error') === true,
  );
  const data = {
    nodes: rows.map(({ nodeId, ageMs, stale, status, converged, error }) => ({
      nodeId,
      ageMs: ageMs ?? null,
      stale,
      converged: converged ?? null,
      services: status?.services ?? [],
      error: error ?? null,
    })),
  };
  return { outcome: wrong ? 'failed' : 'done', text: renderCluster(rows, ctx.clock.now()), data };
}

async function readNode(ctx: Context, store: Store, clusterId: string, nodeId: string): Promise<NodeRow> {
  const empty = { nodeId, ageMs: undefined, stale: true, status: undefined, converged: undefined };
  try {
    const status = (await readJson(store, statusKey(clusterId, nodeId))) as NodeStatus | undefined;
    if (status === undefined) return { ...empty, error: undefined };
    const reeve = (await readJson(store, reeveKey(clusterId, nodeId))) as ReeveDocument | undefined;
    const ageMs = ctx.clock.now().getTime() - Date.parse(status.lastSeen);
    const stale = !(ageMs < staleWindowMs);
    return { nodeId, ageMs, stale, status, converged: reeve?.converged, error: undefined };
  } catch (error) {
    return { ...empty, error: describeError(error) };
  }
}

async function readJson(store: Store, key: string): Promise<Record<string, unknown> | undefined> {
  const stored = await store.get(key);
  if (stored === undefined) return undefined;
  const value: unknown = JSON.parse(stored.text);
  if (!isRecord(value)) throw new TypeError(`cannot read "${key}": it is no JSON object`);
  return value;
}

function renderCluster(rows: readonly NodeRow[], now: Date): string[] {
  if (rows.length === 0) return ['no nodes in the store'];
  return renderTable(
    ['NODE', 'SEEN', 'STATE', 'SERVICES', 'REPLICAS', 'TROUBLE'],
    rows.map((row) => describeRow(row, now)),
  );
}

function describeRow(row: NodeRow, now: Date): string[] {
  const services = row.status?.services ?? [];
  const running = services.reduce((sum, { runningReplicas }) => sum + runningReplicas, 0);
  const desired = services.reduce((sum, { desiredReplicas }) => sum + desiredReplicas, 0);
  const bad = services.filter(({ state }) => state === 'error');
  const trouble = row.error ?? bad.map(({ project, service }) => `${project}/${service}`).join(', ');
  const state = row.stale ? 'stale' : row.converged === false ? 'converging' : 'live';
  const seen = row.status === undefined ? 'never' : ago(row.status.lastSeen, now);
  return [row.nodeId, seen, state, String(services.length), `${running}/${desired}`, trouble];
}
