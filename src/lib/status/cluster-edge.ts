// An edge of the cluster as its documents tell it. Pure.
import type { EdgeReport } from '../cluster/reeve-document.ts';
import type { NodeStatus } from '../cluster/wire.ts';
import { foldLines } from '../report/table.ts';
import { isRecord } from '../state/shape.ts';

export type ClusterEdge = {
  /** `unknown`: of launch-pad's agent, which does not tell. */
  balancer: EdgeReport['balancer'] | 'unknown';
  routes: number;
  /** In status.json, which has room for one. */
  caddyError: string | null;
  /** Where that is Caddy's own. */
  balancerError: string | null;
  rejected: EdgeReport['rejected'];
  repairs: number;
};

/** Undefined where the node is none. `reeve` is reeve.json of whichever version, or nothing. */
export function readEdge(
  { edgeRoutes, caddy }: Partial<NodeStatus>,
  reeve: Record<string, unknown> | undefined,
): ClusterEdge | undefined {
  const report = reeve?.['edge'];
  const routes = Array.isArray(edgeRoutes) ? edgeRoutes.length : 0;
  if (!isRecord(report) && routes === 0) return undefined;
  const caddyError = caddy?.error ?? null;
  const { balancer, rejected, repairs } = isRecord(report) ? report : {};
  return {
    balancer: balancer === 'caddy' || balancer === 'haproxy' ? balancer : 'unknown',
    routes,
    caddyError,
    balancerError: caddyError === null ? null : findBalancerError(reeve?.['failing'], caddyError),
    rejected: Array.isArray(rejected) ? rejected.filter(isRejection) : [],
    repairs: typeof repairs === 'number' ? repairs : 0,
  };
}

export function isEdgeWrong({ caddyError, rejected }: ClusterEdge): boolean {
  return caddyError !== null || rejected.length > 0;
}

/** Empty where there is none. */
export function describeTrouble({ caddyError, balancerError, rejected }: ClusterEdge): string {
  const [first] = rejected;
  const more = rejected.length > 1 ? ` (and ${rejected.length - 1} more)` : '';
  const refused = first === undefined ? [] : [`${first.node} ${first.subject}: ${first.reason}${more}`];
  const errors = [caddyError, balancerError].filter((error) => error !== null);
  return foldLines([...errors, ...refused].join('; '));
}

function findBalancerError(failing: unknown, caddyError: string): string | null {
  if (!Array.isArray(failing) || caddyError.startsWith(balancerPrefix)) return null;
  const messages = failing.map((one) => (isRecord(one) ? one['message'] : undefined));
  const isOurs = (message: unknown): message is string =>
    typeof message === 'string' && message.startsWith(balancerPrefix);
  return messages.find(isOurs) ?? null;
}

const balancerPrefix = 'balancer: ';

function isRejection(value: unknown): value is EdgeReport['rejected'][number] {
  if (!isRecord(value)) return false;
  return ['node', 'subject', 'reason'].every((name) => typeof value[name] === 'string');
}
