// The nodes of a cluster, as the store lists them.
import { nodesPrefix } from '../cluster/keys.ts';
import { nodeIdPattern } from '../ids.ts';
import type { Store } from './store.ts';

const documents = ['node.json', 'desired.json', 'status.json'];

/** What a node has in the store: names below its prefix, with their etags. */
export type NodeListing = ReadonlyMap<string, string>;

/**
 * The nodes that have at least one document of their own, in byte order. `withEdges`: also edges that others have published
 * a shard for, whether anybody looks after them or not. One list tells what there is of a thousand nodes: what it does not
 * name has not to be asked for.
 */
export async function listNodes(
  store: Store,
  clusterId: string,
  { withEdges = false }: { withEdges?: boolean } = {},
): Promise<Map<string, NodeListing>> {
  const prefix = nodesPrefix(clusterId);
  const listings = new Map<string, Map<string, string>>();
  for (const { key, etag } of await store.list(prefix)) {
    const [node = '', ...name] = key.slice(prefix.length).split('/');
    if (!nodeIdPattern.test(node) || name.length === 0) continue;
    const listing = listings.get(node) ?? new Map<string, string>();
    listings.set(node, listing.set(name.join('/'), etag));
  }
  const isNode = (listing: NodeListing): boolean =>
    documents.some((name) => listing.has(name)) || (withEdges && hasShards(listing));
  return new Map([...listings].filter(([, listing]) => isNode(listing)));
}

/** Of an edge. */
export function hasShards(listing: NodeListing): boolean {
  return [...listing.keys()].some((name) => /^upstream\/[^/]+$/.test(name));
}
