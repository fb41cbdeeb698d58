// Two services behind one domain of an edge would each get half of the other's visitors. Pure.
import type { PlacedService } from './parse.ts';
import type { NodePlan } from './plan.ts';

/** One sentence for each service of the release whose domain another service has on the same edge, on whatever node. */
export function findDomainConflicts(
  nodes: readonly { node: string; plan: Pick<NodePlan, 'services'> }[],
  services: readonly PlacedService[],
): string[] {
  const owners = new Map<string, { key: string; node: string }[]>();
  for (const { node, plan } of nodes) {
    for (const { key, value } of plan.services) {
      const claim = key === undefined ? undefined : claimOf(value);
      if (key === undefined || claim === undefined) continue;
      owners.set(claim.place, [...(owners.get(claim.place) ?? []), { key, node }]);
    }
  }
  return services.flatMap(({ key, nodes: own, service }) => {
    const claim = claimOf(service);
    if (claim === undefined) return [];
    const others = (owners.get(claim.place) ?? []).filter((owner) => owner.key !== key);
    const [first] = others;
    if (first === undefined) return [];
    const places = others.filter((owner) => owner.key === first.key).map(({ node }) => node);
    return [
      `domain "${claim.domain}" of "${key}" on ${own.join(', ')} belongs to "${first.key}" on ${places.join(', ')} already`,
    ];
  });
}

/** Host names are the same in upper and lower case; another edge is another matter. */
export function claimOf(service: unknown): { domain: string; place: string } | undefined {
  const { ingress } = service as { ingress?: { domain?: unknown; edge?: unknown } | null };
  if (typeof ingress?.domain !== 'string' || typeof ingress.edge !== 'string') return undefined;
  const domain = ingress.domain.toLowerCase();
  return { domain, place: `${ingress.edge} ${domain}` };
}
