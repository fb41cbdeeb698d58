// What a new node enters into the store, for launch-pad's own CLI and for other nodes: data, written by run.ts.
import { describeCluster } from '../cluster/cluster-document.ts';
import { clusterKey, edgeKey, nodeKey } from '../cluster/keys.ts';
import type { ClusterDocument, EdgeRegistryEntry, NodeRegistryEntry } from '../cluster/wire.ts';
import type { Role } from '../config/config.ts';

export type NodeFacts = {
  nodeId: string;
  agentId: string;
  edgeId?: string;
  clusterId: string;
  roles: readonly Role[];
  region: string;
  advertiseIp: string;
  cpus: number;
  memoryBytes: number;
};

export type RegistryDocument = {
  key: string;
  document: NodeRegistryEntry | EdgeRegistryEntry | ClusterDocument;
};

const createdBy = 'reeve init';

/** On a machine that is both, node and edge are two entries, as on two machines. */
export function planRegistry(facts: NodeFacts, now: Date): RegistryDocument[] {
  const { clusterId, nodeId, edgeId, roles } = facts;
  const createdAt = now.toISOString();
  const documents: RegistryDocument[] = [];
  if (clusterId !== 'default') {
    documents.push({ key: clusterKey(clusterId), document: toClusterDocument(facts, createdAt) });
  }
  if (roles.includes('app')) {
    documents.push({
      key: nodeKey(clusterId, nodeId),
      document: describeNode(facts, { nodeId, role: 'app', createdAt }),
    });
  }
  if (roles.includes('edge') && edgeId !== undefined) {
    const edge: EdgeRegistryEntry = { nodeId: edgeId, domains: [], updatedAt: createdAt };
    documents.push(
      {
        key: nodeKey(clusterId, edgeId),
        document: describeNode(facts, { nodeId: edgeId, role: 'edge', createdAt }),
      },
      { key: edgeKey(clusterId, edgeId), document: edge },
    );
  }
  return documents;
}

function describeNode(
  facts: NodeFacts,
  entry: { nodeId: string; role: Role; createdAt: string },
): NodeRegistryEntry {
  return {
    nodeId: entry.nodeId,
    clusterId: facts.clusterId,
    instanceId: null,
    instanceType: 'external',
    region: facts.region,
    availabilityZone: null,
    role: entry.role,
    privateIp: facts.advertiseIp,
    totalCpu: facts.cpus * 1024,
    totalMemory: Math.floor(facts.memoryBytes / 1024 / 1024),
    reservedCpu: 0,
    reservedMemory: 0,
    publicIp: null,
    eipAllocationId: null,
    securityGroupId: null,
    iamInstanceProfile: null,
    provisioning: 'external',
    advertiseIp: facts.advertiseIp,
    iamUserName: null,
    agentId: facts.agentId,
    agentVersion: null,
    // launch-pad knows only two, and its doctor calls the other one deprecated.
    agentType: 'rust',
    createdAt: entry.createdAt,
    createdBy,
    state: 'ready',
  };
}

function toClusterDocument({ clusterId, edgeId, region }: NodeFacts, createdAt: string): ClusterDocument {
  return describeCluster({ clusterId, defaultEdge: edgeId ?? null, region, createdAt, createdBy });
}
