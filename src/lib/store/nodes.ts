// The nodes of a cluster, as the store lists them.
import { nodesPrefix } from '../cluster/keys.ts';
import { nodeIdPattern } from '../ids.ts';
import type { Store } from './store.ts';

const documents = ['node.json', 'desired.json', 'status.json'];

/**
 * Ids of the nodes that have at least one document of their own, in byte order. `withEdges`: also of edges that others have
 * published a shard for, whether anybody looks after them or not.
 */
export async function listNodes(
  store: Store,
  clusterId: string,
  { withEdges = false }: { withEdges?: boolean } = {},
): Promise<string[]> {
  const prefix = nodesPrefix(clusterId);
  const nodes = new Set<string>();
  for (const { key } of await store.list(prefix)) {
    const [node = '', file = '', ...deeper] = key.slice(prefix.length).split('/');
    const isOwn = deeper.length === 0 && documents.includes(file);
    const isNamed = withEdges && deeper.length === 1 && file === 'upstream';
    if (nodeIdPattern.test(node) && (isOwn || isNamed)) nodes.add(node);
  }
  return [...nodes];
}
