// Which containers are ours. A stranger's is never touched; launch-pad's are adopted once, by their ids, and only where
// the desired state names their service: an old label on somebody else's container is no licence. Pure.
import { ownershipOf, parseReplicaLabels, type ReplicaIdentity } from '../cluster/names.ts';
import { serviceKey } from '../cluster/wire.ts';
import type { ContainerSummary } from '../docker/types.ts';
import type { DesiredFacts, Replica, Stranger } from './facts.ts';

export type Sorted = {
  replicas: Replica[];
  strangers: Stranger[];
  /** Ids that this first tick with a desired state makes ours. */
  adopting: string[];
};

export type OwnershipRules = {
  nodeId: string;
  /** Ids adopted earlier; undefined before the one adoption. */
  adopted: readonly string[] | undefined;
  desired: DesiredFacts;
};

export function sortContainers(containers: readonly ContainerSummary[], rules: OwnershipRules): Sorted {
  const sorted: Sorted = { replicas: [], strangers: [], adopting: [] };
  const wanted = new Set(rules.desired.kind === 'document' ? rules.desired.services.map(serviceKey) : []);
  for (const container of containers) {
    const identity = parseReplicaLabels(container.labels);
    if (identity === undefined) continue;
    const key = serviceKey(identity);
    const refusal = refusalOf(container, rules, wanted.has(key));
    if (refusal !== undefined) {
      sorted.strangers.push({ containerId: container.id, name: container.name, key, why: refusal });
      continue;
    }
    sorted.replicas.push(toReplica(container, identity));
    const adopting = rules.adopted === undefined && rules.desired.kind === 'document';
    if (adopting && ownershipOf(container.labels, rules.nodeId) === 'adoptable') {
      sorted.adopting.push(container.id);
    }
  }
  return sorted;
}

/** Why a container is not ours, or undefined if it is. */
function refusalOf(container: ContainerSummary, rules: OwnershipRules, wanted: boolean): string | undefined {
  switch (ownershipOf(container.labels, rules.nodeId)) {
    case 'ours':
      return undefined;
    case 'adoptable': {
      if (rules.adopted === undefined) return wanted ? undefined : 'it has no owner and is not desired here';
      return rules.adopted.includes(container.id) ? undefined : 'it has no owner and came after the adoption';
    }
    case 'stranger':
      return `it belongs to node ${container.labels['reeve.node']}`;
    case 'foreign':
      return 'it carries no label of ours';
  }
}

function toReplica(container: ContainerSummary, identity: ReplicaIdentity): Replica {
  const published = container.ports.find((port) => port.hostPort > 0);
  return {
    ...identity,
    containerId: container.id,
    name: container.name,
    state: container.state,
    statusText: container.statusText,
    hostPort: published?.hostPort,
    containerPort: published?.containerPort,
    networks: container.networks,
    createdAt: container.createdAt,
    exitCode: parseExitCode(container.statusText),
  };
}

/** The list of containers tells it in words only: `Exited (3) 5 minutes ago`. */
function parseExitCode(statusText: string): number | undefined {
  const code = /^Exited \((\d+)\)/.exec(statusText)?.[1];
  return code === undefined ? undefined : Number(code);
}
