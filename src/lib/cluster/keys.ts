// Where each document of a cluster lies in the store: launch-pad's layout, and the few keys that reeve adds.
// Ids become path components here, so this is where they are checked.
import { InputError } from '../errors.ts';
import { nodeIdPattern } from '../ids.ts';

/** All nodes of a cluster lie below this. */
export function nodesPrefix(clusterId: string): string {
  return clusterId === 'default' ? 'nodes/' : `clusters/${requireId('cluster', clusterId)}/nodes/`;
}

export function nodePrefix(clusterId: string, nodeId: string): string {
  return `${nodesPrefix(clusterId)}${requireId('node', nodeId)}/`;
}

export function clusterKey(clusterId: string): string {
  return `clusters/${requireId('cluster', clusterId)}/cluster.json`;
}

export function desiredKey(clusterId: string, nodeId: string): string {
  return `${nodePrefix(clusterId, nodeId)}desired.json`;
}

export function statusKey(clusterId: string, nodeId: string): string {
  return `${nodePrefix(clusterId, nodeId)}status.json`;
}

/** The node's registry entry. */
export function nodeKey(clusterId: string, nodeId: string): string {
  return `${nodePrefix(clusterId, nodeId)}node.json`;
}

/** The edge's registry entry. */
export function edgeKey(clusterId: string, edgeId: string): string {
  return `${nodePrefix(clusterId, edgeId)}edge.json`;
}

/** All shards that nodes have published for an edge. */
export function upstreamPrefix(clusterId: string, edgeId: string): string {
  return `${nodePrefix(clusterId, edgeId)}upstream/`;
}

/** The shard of one node: it lies below the edge that reads it. */
export function upstreamKey(clusterId: string, edgeId: string, appNodeId: string): string {
  return `${upstreamPrefix(clusterId, edgeId)}${requireId('node', appNodeId)}.json`;
}

/** What reeve publishes for its own use; launch-pad's documents are read strictly by others. */
export function reeveKey(clusterId: string, nodeId: string): string {
  return `${nodePrefix(clusterId, nodeId)}reeve.json`;
}

/** The services whose removal a deploy has announced. */
export function removalsKey(clusterId: string, nodeId: string): string {
  return `${nodePrefix(clusterId, nodeId)}removals.json`;
}

/** Earlier desired states of the node, newest last. */
export function deploysPrefix(clusterId: string, nodeId: string): string {
  return `${nodePrefix(clusterId, nodeId)}deploys/`;
}

function requireId(kind: 'node' | 'cluster', id: string): string {
  if (nodeIdPattern.test(id)) return id;
  throw new InputError(
    `cannot use ${kind} id ${JSON.stringify(id)}: ids are letters, digits, "_" and "-", at most 64`,
  );
}
