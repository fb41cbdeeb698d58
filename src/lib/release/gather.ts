// Reads from the store what a deploy decides by: which nodes there are, and the desired state of each.

import { mapBounded } from '../bounded.ts';
import { clusterKey, deploysPrefix, desiredKey } from '../cluster/keys.ts';
import { describeError, InputError } from '../errors.ts';
import type { NodeListing } from '../store/nodes.ts';
import type { Store } from '../store/store.ts';
import { parseObject } from './json.ts';
import type { EarlierDeploy } from './plan-rollback.ts';
import { emptyDesired, parseRawDesired, type RawDesired } from './raw-document.ts';

/** Requests under way at once. */
export const parallel = 50;

export type Target = { store: Store; clusterId: string };

/** A node's desired state at the moment it was read. */
export type NodeState = {
  node: string;
  document: RawDesired;
  /** Undefined where the node has no document yet. */
  stored: { text: string; etag: string } | undefined;
  /** What the store had of the node before; undefined where it was not asked. */
  listing: NodeListing | undefined;
};

export type UnreadableNode = { node: string; error: InputError };

/** Throws InputError for a document we refuse: it must not be written over. */
export async function readNode({ store, clusterId }: Target, node: string): Promise<NodeState> {
  const key = desiredKey(clusterId, node);
  const stored = await store.get(key);
  if (stored === undefined) return nothingOf(node);
  return {
    node,
    listing: undefined,
    document: parseRawDesired(stored.text, key),
    stored: { text: stored.text, etag: stored.etag },
  };
}

function nothingOf(node: string): NodeState {
  return { node, document: emptyDesired(node), stored: undefined, listing: undefined };
}

/** All of them; one that cannot be understood does not hide the others. */
export async function readNodes(
  target: Target,
  nodes: ReadonlyMap<string, NodeListing>,
): Promise<{ states: NodeState[]; unreadable: UnreadableNode[] }> {
  const read = async ([node, listing]: [string, NodeListing]): Promise<NodeState | UnreadableNode> => {
    try {
      const state = listing.has('desired.json') ? await readNode(target, node) : nothingOf(node);
      return { ...state, listing };
    } catch (error) {
      if (error instanceof InputError) return { node, error };
      throw error;
    }
  };
  const results = await mapBounded([...nodes], parallel, read);
  return {
    states: results.filter((result) => 'document' in result),
    unreadable: results.filter((result) => 'error' in result),
  };
}

/** The cluster's own choice of an edge, where it has made one. */
export async function readDefaultEdge({ store, clusterId }: Target): Promise<string | undefined> {
  const edge = parseObject((await store.get(clusterKey(clusterId)))?.text)?.['defaultEdge'];
  return typeof edge === 'string' ? edge : undefined;
}

/** Desired states that the node has had, the present one among them, newest first. One that cannot be read is left out. */
export async function readEarlier(
  { store, clusterId }: Target,
  node: string,
  warn: (message: string) => void,
): Promise<EarlierDeploy[]> {
  const entries = await store.list(deploysPrefix(clusterId, node));
  const documents = await mapBounded(entries.toReversed(), parallel, async ({ key }) => {
    const stored = await store.get(key);
    if (stored === undefined) return undefined;
    try {
      const { updatedAt, services } = parseRawDesired(stored.text, key);
      return { updatedAt, services };
    } catch (error) {
      warn(`an earlier deploy is left out: ${describeError(error)}`);
      return undefined;
    }
  });
  return documents.filter((document) => document !== undefined);
}
