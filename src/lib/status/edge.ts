// The edge of this machine: what was published last, how its balancer fares now, and what was refused. Pure.
import type { NodeStatus } from '../cluster/wire.ts';
import type { CaddyConfig } from '../config/config.ts';
import { whyNoCertificate } from '../edge/certificate.ts';
import type { Published } from '../publish/status-writer.ts';
import { foldLines, renderTable } from '../report/table.ts';
import { ago } from './ago.ts';

export type EdgeView = {
  edgeId: string;
  published: Pick<Published, 'body' | 'status' | 'failing'> | undefined;
  caddy: Pick<CaddyConfig, 'issuer'>;
  balancer: LiveBalancer;
};

/** As it answers just now. */
export type LiveBalancer = {
  name: 'caddy' | 'haproxy';
  version?: string;
  /** Backends that serve, by domain; absent where it cannot be asked, and where it is Caddy, which does not tell. */
  up?: ReadonlyMap<string, number>;
};

type Domain = { domain: string; upstreams: number; serving?: number };

/** More domains than this are counted; `--json` lists them all. */
const mostDomains = 40;

export function isEdgeWrong(view: EdgeView): boolean {
  const { published } = view;
  if (published === undefined) return false;
  return (
    published.body.caddy.error !== null ||
    troublesOf(view).length > 0 ||
    domainsOf(view).some(({ serving }) => serving === 0)
  );
}

export function describeEdge(view: EdgeView): Record<string, unknown> {
  const { edgeId, published, balancer } = view;
  return {
    id: edgeId,
    publishedAt: published?.status.lastWriteAt ?? null,
    caddy: published?.body.caddy ?? null,
    balancer: {
      name: balancer.name,
      version: balancer.version ?? null,
      answers: balancer.name === 'caddy' ? null : balancer.up !== undefined,
    },
    domains: domainsOf(view),
    troubles: troublesOf(view),
  };
}

export function renderEdge(view: EdgeView, now: Date): string[] {
  const { edgeId, published, balancer } = view;
  if (published === undefined) return [`edge ${edgeId}: nothing published yet`];
  const { caddy, edgeRoutes } = published.body;
  return [
    `edge ${edgeId}: published ${ago(published.status.lastWriteAt, now)}, ${countRoutes(edgeRoutes)}`,
    caddy.lastReloadAt === null
      ? 'caddy: never given a configuration'
      : `caddy: last configured ${ago(caddy.lastReloadAt, now)}`,
    `balancer: ${describeBalancer(balancer)}`,
    ...renderRoutes(domainsOf(view)),
    ...troublesOf(view).map((trouble) => `trouble ${foldLines(trouble)}`),
  ];
}

function describeBalancer({ name, version, up }: LiveBalancer): string {
  if (name === 'caddy') return 'caddy';
  return up === undefined ? 'haproxy, which does not answer' : `haproxy ${version ?? ''}`.trimEnd();
}

/** `2 domains, 5 backends`. */
function countRoutes(routes: NodeStatus['edgeRoutes']): string {
  const backends = routes.reduce((sum, { upstreams }) => sum + upstreams, 0);
  const domains = routes.length === 1 ? '1 domain' : `${routes.length} domains`;
  return `${domains}, ${backends === 1 ? '1 backend' : `${backends} backends`}`;
}

function domainsOf({ published, balancer }: EdgeView): Domain[] {
  const routes = published?.body.edgeRoutes ?? [];
  return routes.map(({ domain, upstreams }) => {
    const up = balancer.up?.get(domain);
    return { domain, upstreams, ...(up !== undefined && { serving: Math.min(up, upstreams) }) };
  });
}

/** Of very many those that nobody would find. */
function renderRoutes(domains: readonly Domain[]): string[] {
  const shown =
    domains.length <= mostDomains
      ? domains
      : domains.filter(({ serving }) => serving === 0).slice(0, mostDomains);
  if (shown.length === 0) return [];
  return renderTable(
    ['DOMAIN', 'BACKENDS'],
    shown.map(({ domain, upstreams, serving }) => [
      domain,
      serving === undefined ? String(upstreams) : `${serving} of ${upstreams} serve`,
    ]),
  );
}

/** One line each: what a tick could not do or has refused, and the names that will never have a certificate. */
function troublesOf({ published, caddy }: EdgeView): readonly string[] {
  if (published === undefined) return [];
  const { body, failing = [] } = published;
  // The error that others read is one of these in other words.
  const isTold = body.caddy.error === null || failing.length > 0;
  const without = body.edgeRoutes.flatMap(({ domain }) => {
    const reason = whyNoCertificate(domain, caddy);
    return reason === undefined ? [] : [`${domain}: no certificate: ${reason}`];
  });
  return [...(isTold ? failing : [body.caddy.error ?? '']), ...without];
}
