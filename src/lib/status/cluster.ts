// Every node of the cluster as its own documents in the store tell it. Read-only, at most two requests a node.
import { mapBounded } from '../bounded.ts';
import { nodeKey, reeveKey, statusKey } from '../cluster/keys.ts';
import type { ClusterConfig } from '../config/config.ts';
import { staleWindowMs } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { describeError } from '../errors.ts';
import type { Outcome } from '../outcome.ts';
import { renderTable } from '../report/table.ts';
import { listNodes, type NodeListing } from '../store/nodes.ts';
import { openStore } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import { ago } from './ago.ts';
import { type ClusterEdge, describeTrouble, isEdgeWrong, readEdge } from './cluster-edge.ts';
import { parseObjectOf, parseShownStatus, type ShownStatus } from './cluster-status.ts';

type NodeRow = {
  nodeId: string;
  /** Milliseconds since the node was last seen; undefined if it never was. */
  ageMs: number | undefined;
  stale: boolean;
  status: ShownStatus | undefined;
  /** Only of an edge that has told of itself. */
  edge: ClusterEdge | undefined;
  converged: boolean | undefined;
  /** It has a desired state, were it an empty one. */
  deployed: boolean;
  /** By the registry launch-pad's own agent, which reeve takes the place of. */
  hasSeedAgent: boolean;
  error: string | undefined;
};

/** At most this many requests are in flight. */
const parallel = 50;

/** `failed` (exit 1) if a node is stale, unreadable, or has a service or a route that is not as it should be. */
export async function showCluster(ctx: Context, cluster: ClusterConfig): Promise<Outcome> {
  const store = await openStore(cluster, { signal: ctx.signal });
  const nodes = await listNodes(store, cluster.clusterId, { withEdges: true });
  const source = { store, clusterId: cluster.clusterId };
  const rows = await mapBounded([...nodes], parallel, ([nodeId, listing]) =>
    readNode(ctx, source, nodeId, listing),
  );
  const wrong = rows.some(
    (row) =>
      row.stale ||
      row.error !== undefined ||
      (row.edge !== undefined && isEdgeWrong(row.edge)) ||
      row.status?.services.some(({ state }) => state === 'error') === true,
  );
  const data = {
    nodes: rows.map(({ nodeId, ageMs, stale, status, edge, converged, deployed, hasSeedAgent, error }) => ({
      nodeId,
      ageMs: ageMs ?? null,
      stale,
      converged: converged ?? null,
      deployed,
      services: status?.services ?? [],
      ...(edge && { edge }),
      ...(hasSeedAgent && { agentType: 'ts' }),
      error: error ?? null,
    })),
  };
  return { outcome: wrong ? 'failed' : 'done', text: renderCluster(rows, ctx.clock.now()), data };
}

type Source = { store: Store; clusterId: string };

/** What the list does not name is not asked for: a node that has no reeve.json is asked for what it runs instead. */
async function readNode(
  ctx: Context,
  { store, clusterId }: Source,
  nodeId: string,
  listing: NodeListing,
): Promise<NodeRow> {
  const nothing = { ageMs: undefined, status: undefined, edge: undefined, converged: undefined };
  const deployed = listing.has('desired.json');
  const empty = { ...nothing, nodeId, deployed, stale: true, hasSeedAgent: false };
  const read = async (name: string, key: string): Promise<string | undefined> =>
    listing.has(name) ? (await store.get(key))?.text : undefined;
  const keyOfStatus = statusKey(clusterId, nodeId);
  const keyOfReeve = reeveKey(clusterId, nodeId);
  const keyOfEntry = nodeKey(clusterId, nodeId);
  try {
    const text = await read('status.json', keyOfStatus);
    const status = text === undefined ? undefined : parseShownStatus(text, keyOfStatus);
    const told = await read('reeve.json', keyOfReeve);
    const reeve = told === undefined ? undefined : parseObjectOf(told, keyOfReeve);
    const registered = told === undefined ? await read('node.json', keyOfEntry) : undefined;
    const entry = registered === undefined ? undefined : parseObjectOf(registered, keyOfEntry);
    const hasSeedAgent = entry?.['agentType'] === 'ts';
    if (status === undefined) return { ...empty, hasSeedAgent, error: undefined };
    const converged = typeof reeve?.['converged'] === 'boolean' ? reeve['converged'] : undefined;
    const ageMs = ctx.clock.now().getTime() - Date.parse(status.lastSeen);
    const stale = !(ageMs < staleWindowMs);
    const edge = readEdge(status, reeve);
    return { nodeId, ageMs, stale, status, edge, converged, deployed, hasSeedAgent, error: undefined };
  } catch (error) {
    return { ...empty, error: describeError(error) };
  }
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

/** There is nothing that the node could come to. */
function isIdle({ deployed, edge, status }: NodeRow): boolean {
  return !deployed && edge === undefined && status?.services.length === 0;
}

function describeState(row: NodeRow): string {
  const { status, error, stale, converged, edge } = row;
  if (status === undefined && error === undefined) return 'never seen';
  if (stale) return 'stale';
  if (isIdle(row)) return 'nothing deployed';
  // An edge has no desired state to come to: what is wrong with it is told as trouble.
  return converged === false && edge === undefined ? 'converging' : 'live';
}

function troubleOf({ error, status, edge, hasSeedAgent }: NodeRow): string {
  if (error !== undefined) return error;
  const bad = status?.services.filter(({ state }) => state === 'error') ?? [];
  const services = bad.map(({ project, service }) => `${project}/${service}`).join(', ');
  const told = edge !== undefined && bad.length === 0 ? describeTrouble(edge) : services;
  const warning = hasSeedAgent ? "launch-pad's TypeScript agent runs it" : '';
  return [warning, told].filter((part) => part !== '').join('; ');
}
