// Every node of the cluster as its own documents in the store tell it. Read-only, at most two requests a node.
import { reeveKey, statusKey } from '../cluster/keys.ts';
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
import { ago } from './ago.ts';
import { type ClusterEdge, describeTrouble, isEdgeWrong, readEdge } from './cluster-edge.ts';

type NodeRow = {
  nodeId: string;
  /** Milliseconds since the node was last seen; undefined if it never was. */
  ageMs: number | undefined;
  stale: boolean;
  status: NodeStatus | undefined;
  /** Only of an edge that has told of itself. */
  edge: ClusterEdge | undefined;
  converged: boolean | undefined;
  error: string | undefined;
};

/** At most this many requests are in flight. */
const parallel = 50;

/** `failed` (exit 1) if a node is stale, unreadable, or has a service or a route that is not as it should be. */
export async function showCluster(ctx: Context, cluster: ClusterConfig): Promise<Outcome> {
  const store = await openStore(cluster, { signal: ctx.signal });
  const nodeIds = await listNodes(store, cluster.clusterId, { withEdges: true });
  const rows: NodeRow[] = [];
  for (let start = 0; start < nodeIds.length; start += parallel) {
    const batch = nodeIds.slice(start, start + parallel);
    rows.push(...(await Promise.all(batch.map((nodeId) => readNode(ctx, store, cluster.clusterId, nodeId)))));
  }
  const wrong = rows.some(
    (row) =>
      row.stale ||
      row.error !== undefined ||
      (row.edge !== undefined && isEdgeWrong(row.edge)) ||
      row.status?.services.some(({ state }) => state === 'error') === true,
  );
  const data = {
    nodes: rows.map(({ nodeId, ageMs, stale, status, edge, converged, error }) => ({
      nodeId,
      ageMs: ageMs ?? null,
      stale,
      converged: converged ?? null,
      services: status?.services ?? [],
      ...(edge && { edge }),
      error: error ?? null,
    })),
  };
  return { outcome: wrong ? 'failed' : 'done', text: renderCluster(rows, ctx.clock.now()), data };
}

async function readNode(ctx: Context, store: Store, clusterId: string, nodeId: string): Promise<NodeRow> {
  const nothing = { ageMs: undefined, status: undefined, edge: undefined, converged: undefined };
  const empty = { ...nothing, nodeId, stale: true };
  try {
    const status = (await readJson(store, statusKey(clusterId, nodeId))) as NodeStatus | undefined;
    if (status === undefined) return { ...empty, error: undefined };
    const reeve = await readJson(store, reeveKey(clusterId, nodeId));
    const converged = typeof reeve?.['converged'] === 'boolean' ? reeve['converged'] : undefined;
    const ageMs = ctx.clock.now().getTime() - Date.parse(status.lastSeen);
    const stale = !(ageMs < staleWindowMs);
    const edge = readEdge(status, reeve);
    return { nodeId, ageMs, stale, status, edge, converged, error: undefined };
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
    ['NODE', 'SEEN', 'STATE', 'SERVICES', 'REPLICAS', 'ROUTES', 'TROUBLE'],
    rows.map((row) => describeRow(row, now)),
  );
}

function describeRow(row: NodeRow, now: Date): string[] {
  const { nodeId, status, edge } = row;
  const seen = status === undefined ? 'never' : ago(status.lastSeen, now);
  const services = status?.services ?? [];
  const isEdgeOnly = edge !== undefined && services.length === 0;
  const running = services.reduce((sum, { runningReplicas }) => sum + runningReplicas, 0);
  const desired = services.reduce((sum, { desiredReplicas }) => sum + desiredReplicas, 0);
  return [
    ...[nodeId, seen, describeState(row)],
    ...(isEdgeOnly || status === undefined ? ['', ''] : [String(services.length), `${running}/${desired}`]),
    edge === undefined ? '' : `${edge.routes} by ${edge.balancer}`,
    troubleOf(row),
  ];
}

function describeState({ status, error, stale, converged, edge }: NodeRow): string {
  if (status === undefined && error === undefined) return 'never seen';
  if (stale) return 'stale';
  // An edge has no desired state to come to: what is wrong with it is told as trouble.
  return converged === false && edge === undefined ? 'converging' : 'live';
}

function troubleOf({ error, status, edge }: NodeRow): string {
  if (error !== undefined) return error;
  const bad = status?.services.filter(({ state }) => state === 'error') ?? [];
  if (edge !== undefined && bad.length === 0) return describeTrouble(edge);
  return bad.map(({ project, service }) => `${project}/${service}`).join(', ');
}
