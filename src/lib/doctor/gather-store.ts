// Reads the store, and in a directory writes one small probe below this node's own prefix.
import { parseDesired } from '../cluster/desired.ts';
import { desiredKey, nodePrefix, nodesPrefix } from '../cluster/keys.ts';
import type { ClusterConfig } from '../config/config.ts';
import { describeError, InputError } from '../errors.ts';
import { openStore } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import type { StoreFacts } from './judge-store.ts';
import type { World } from './world.ts';

type NodeFacts = NonNullable<StoreFacts['node']>;

/** Throws what the store throws where it cannot be read. */
export async function gatherStore(world: World, cluster: ClusterConfig): Promise<StoreFacts> {
  const store = await openStore(cluster, { signal: world.signal });
  const prefix = nodesPrefix(cluster.clusterId);
  const keys = (await store.list(prefix)).map(({ key }) => key.slice(prefix.length));
  const isAbout = (key: string): boolean => /^[^/]+\/(node|desired)\.json$/.test(key);
  const nodes = new Set(keys.filter(isAbout).map((key) => key.slice(0, key.indexOf('/'))));
  const { nodeId } = cluster;
  const facts = { url: store.url, nodes: nodes.size };
  if (nodeId === undefined) return facts;
  const desired = await readDesired(store, desiredKey(cluster.clusterId, nodeId));
  // Of other stores the first heartbeat tells whether they can be written: a probe costs money and wakes readers.
  const isDirectory = cluster.store.startsWith('file:');
  const probe = isDirectory ? await probeStore(world, store, nodePrefix(cluster.clusterId, nodeId)) : noProbe;
  return { ...facts, node: { nodeId, ...probe, desired } };
}

const noProbe = { clockAheadMs: undefined, writeError: undefined };

async function probeStore(
  { base }: World,
  store: Store,
  prefix: string,
): Promise<Pick<NodeFacts, 'clockAheadMs' | 'writeError'>> {
  const key = `${prefix}doctor-probe-${base.runId}`;
  try {
    await store.put(key, `${base.runId}\n`);
    const entry = await store.head(key);
    await store.delete(key);
    return {
      clockAheadMs: entry && entry.updatedAt.getTime() - base.clock.now().getTime(),
      writeError: undefined,
    };
  } catch (error) {
    return { clockAheadMs: undefined, writeError: describeError(error) };
  }
}

async function readDesired(store: Store, key: string): Promise<NodeFacts['desired']> {
  const stored = await store.get(key);
  if (stored === undefined) return { kind: 'none' };
  try {
    return {
      kind: 'document',
      rejected: parseDesired(stored.text, key).rejected.map(({ reason }) => reason),
    };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { kind: 'refused', error: describeError(error) };
  }
}
