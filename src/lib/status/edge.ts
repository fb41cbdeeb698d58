// The edge of this machine as it was published last: what is routed, how Caddy fares, and what was refused. Pure.
import type { NodeStatus } from '../cluster/wire.ts';
import type { Published } from '../publish/status-writer.ts';
import { foldLines, renderTable } from '../report/table.ts';
import { ago } from './ago.ts';

export type EdgeView = {
  edgeId: string;
  published: Pick<Published, 'body' | 'status' | 'failing'> | undefined;
};

/** More domains than this are counted; `--json` lists them all. */
const mostDomains = 40;

export function isEdgeWrong({ published }: EdgeView): boolean {
  return published !== undefined && (published.body.caddy.error !== null || troublesOf(published).length > 0);
}

export function describeEdge({ edgeId, published }: EdgeView): Record<string, unknown> {
  return {
    id: edgeId,
    publishedAt: published?.status.lastWriteAt ?? null,
    caddy: published?.body.caddy ?? null,
    domains: published?.body.edgeRoutes ?? [],
    troubles: published === undefined ? [] : troublesOf(published),
  };
}

export function renderEdge(view: EdgeView, now: Date): string[] {
  const { edgeId, published } = view;
  if (published === undefined) return [`edge ${edgeId}: nothing published yet`];
  const { caddy, edgeRoutes } = published.body;
  return [
    `edge ${edgeId}: published ${ago(published.status.lastWriteAt, now)}, ${countRoutes(edgeRoutes)}`,
    renderCaddy(caddy, now),
    ...renderRoutes(edgeRoutes),
    ...troublesOf(published).map((trouble) => `trouble ${foldLines(trouble)}`),
  ];
}

/** `2 domains, 5 backends`. */
function countRoutes(routes: NodeStatus['edgeRoutes']): string {
  const backends = routes.reduce((sum, { upstreams }) => sum + upstreams, 0);
  const domains = routes.length === 1 ? '1 domain' : `${routes.length} domains`;
  return `${domains}, ${backends === 1 ? '1 backend' : `${backends} backends`}`;
}

function renderCaddy({ lastReloadAt, error }: NodeStatus['caddy'], now: Date): string {
  const loaded =
    lastReloadAt === null ? 'never given a configuration' : `configured ${ago(lastReloadAt, now)}`;
  return error === null ? `caddy: ${loaded}` : `caddy: ${loaded}; ${foldLines(error)}`;
}

function renderRoutes(routes: NodeStatus['edgeRoutes']): string[] {
  if (routes.length === 0 || routes.length > mostDomains) return [];
  return renderTable(
    ['DOMAIN', 'BACKENDS'],
    routes.map(({ domain, upstreams }) => [domain, String(upstreams)]),
  );
}

/** Caddy's own error has its line already. */
function troublesOf({ failing = [] }: Pick<Published, 'failing'>): readonly string[] {
  return failing.filter((message) => !message.startsWith('caddy: '));
}
