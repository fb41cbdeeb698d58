// The nodes of a cluster, as the store lists them.
import { nodesPrefix } from '../cluster/keys.ts';
import { nodeIdPattern } from '../ids.ts';
import type { Store } from './store.ts';

const documents = ['node.json', 'desired.json', 'status.json'];

/** Ids of the nodes that have at least one document of their own, in byte order. */
export async function listNodes(store: Store, clusterId: string): Promise<string[]> {
  const prefix = nodesPrefix(clusterId);
  const nodes = new Set<string>();
  for (const { key } of await store.list(prefix)) {
    const [node = '', file = '', ...deeper] = key.slice(prefix.length).split('/');
    if (deeper.length === 0 && nodeIdPattern.test(node) && documents.includes(file)) nodes.add(node);
  }
  return [...nodes];
}
