// Two services behind one domain would each get half of the other's visitors. Pure.
import type { PlacedService } from './parse.ts';
import type { NodePlan } from './plan.ts';

/** One sentence for each service of the release whose domain another service has, on whatever node. */
export function findDomainConflicts(
  nodes: readonly { plan: NodePlan }[],
  services: readonly PlacedService[],
): string[] {
  const owners = new Map<string, Set<string>>();
  for (const { plan } of nodes) {
    for (const { key, value } of plan.services) {
      const domain = key === undefined ? undefined : domainOf(value);
      if (key === undefined || domain === undefined) continue;
      owners.set(domain, (owners.get(domain) ?? new Set()).add(key));
    }
  }
  return services.flatMap(({ key, service }) => {
    const domain = domainOf(service);
    const others =
      domain === undefined ? [] : [...(owners.get(domain) ?? [])].filter((owner) => owner !== key);
    return others.length === 0 ? [] : [`domain "${domain}" of "${key}" belongs to "${others[0]}" already`];
  });
}

function domainOf(service: unknown): string | undefined {
  const { ingress } = service as { ingress?: { domain?: unknown } | null };
  return typeof ingress?.domain === 'string' ? ingress.domain.toLowerCase() : undefined;
}
