// Reads the store, and in a directory writes one small probe below this node's own prefix.
import { parseDesired } from '../cluster/desired.ts';
import { desiredKey, nodeKey, nodePrefix, nodesPrefix, upstreamPrefix } from '../cluster/keys.ts';
import type { ClusterConfig } from '../config/config.ts';
import { describeError, InputError } from '../errors.ts';
import { openStore } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import { gatherStrayDomains } from './gather-strays.ts';
import type { StoreFacts } from './judge-store.ts';
import type { World } from './world.ts';

type NodeFacts = NonNullable<StoreFacts['node']>;

/** Throws what the store throws where it cannot be read. */
export async function gatherStore(world: World, cluster: ClusterConfig): Promise<StoreFacts> {
  const store = await openStore(cluster, { signal: world.signal });
  const { nodeId } = cluster;
  const isDirectory = cluster.store.startsWith('file:');
  // A node's role in the cloud need not let it list what is other nodes', and an edge's only what is published for it.
  const isAlone = nodeId !== undefined && !isDirectory;
  const nodes = isAlone ? undefined : await countNodes(store, nodesPrefix(cluster.clusterId));
  const facts = { url: store.url, nodes };
  if (nodeId === undefined) return facts;
  if (isAlone && !cluster.roles.includes('app')) {
    await store.list(upstreamPrefix(cluster.clusterId, cluster.edgeId ?? nodeId));
    return facts;
  }
  const isApp = cluster.roles.includes('app');
  // An edge alone has nothing to run, and writes below its own id.
  const id = isApp ? nodeId : (cluster.edgeId ?? nodeId);
  const desired = isApp
    ? await readDesired(store, desiredKey(cluster.clusterId, nodeId))
    : { kind: 'of-an-edge' as const };
  const agentType = await readAgentType(store, nodeKey(cluster.clusterId, id));
  // Of other stores the first heartbeat tells whether they can be written: a probe costs money and wakes readers.
  const probe = isDirectory ? await probeStore(world, store, nodePrefix(cluster.clusterId, id)) : noProbe;
  const strays = await gatherStrayDomains(store, cluster);
  const { edgeId } = cluster;
  return {
    ...facts,
    node: { nodeId: id, isProbed: isDirectory, ...probe, desired, agentType, strays, edgeId },
  };
}

async function countNodes(store: Store, prefix: string): Promise<number> {
  const keys = (await store.list(prefix)).map(({ key }) => key.slice(prefix.length));
  const isAbout = (key: string): boolean => /^[^/]+\/(node|desired)\.json$/.test(key);
  return new Set(keys.filter(isAbout).map((key) => key.slice(0, key.indexOf('/')))).size;
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

/** Of the registry, which launch-pad's own CLI goes by. A node's role in the cloud need not let it read that. */
async function readAgentType(store: Store, key: string): Promise<string | undefined> {
  try {
    const stored = await store.get(key);
    const agentType: unknown = stored && JSON.parse(stored.text).agentType;
    return typeof agentType === 'string' ? agentType : undefined;
  } catch {
    return undefined;
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
