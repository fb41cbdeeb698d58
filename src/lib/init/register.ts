// The new node's entries in the store. What is there already stays, so that a run that failed halfway is simply repeated.
import { mkdir } from 'node:fs/promises';
import { availableParallelism, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { clusterKey, nodeKey, statusKey } from '../cluster/keys.ts';
import { type NodeRegistryEntry, renderDocument } from '../cluster/wire.ts';
import type { ClusterConfig } from '../config/config.ts';
import { staleWindowMs } from '../config/rules.ts';
import type { BaseContext } from '../context.ts';
import { ConfigError, describeError, ReeveError } from '../errors.ts';
import { findAdvertiseIp } from '../host/addresses.ts';
import { isRecord } from '../state/shape.ts';
import { openStore } from '../store/open.ts';
import { PreconditionError, type Store } from '../store/store.ts';
import { formatDuration } from '../time.ts';
import { planRegistry } from './registry.ts';

export type Entry = { key: string; isNew: boolean };

/** Also warns of another machine that has the same id. Throws what the store throws. */
export async function register(
  base: BaseContext,
  cluster: ClusterConfig & { nodeId: string },
): Promise<Entry[]> {
  await makeStoreDirectory(cluster.store);
  const store = await openStore(cluster, { signal: base.signal });
  const advertiseIp = await findAdvertiseIp(cluster, { log: base.log });
  const now = base.clock.now();
  const documents = planRegistry(
    {
      ...cluster,
      agentId: cluster.agentId ?? cluster.nodeId,
      advertiseIp,
      cpus: availableParallelism(),
      memoryBytes: totalmem(),
    },
    now,
  );
  const entries: Entry[] = [];
  for (const { key, document } of documents) {
    try {
      const isNew = await putAbsent(store, key, renderDocument(document));
      entries.push({ key, isNew });
      if (isNew || !('advertiseIp' in document)) continue;
      const other = await findOther(store, document, now);
      if (other !== undefined) base.log.warning(other);
    } catch (error) {
      if (!isOthers(error, key, cluster.clusterId)) throw error;
      base.log.info(`left ${key} to whoever deploys: this node may not write it`);
    }
  }
  return entries;
}

/**
 * A sentence where the entry that is there is another machine's: by the address in it, or by a fresh report, which a machine
 * that is only about to be a node has not sent.
 */
async function findOther(
  store: Store,
  { clusterId, nodeId, advertiseIp }: NodeRegistryEntry,
  now: Date,
): Promise<string | undefined> {
  const entry = await readRecord(store, nodeKey(clusterId, nodeId));
  const status = await readRecord(store, statusKey(clusterId, nodeId));
  const address = entry['advertiseIp'];
  const ageMs = now.getTime() - Date.parse(String(status['lastSeen']));
  const signs = [
    ...(typeof address === 'string' && address !== advertiseIp
      ? [`its entry has the address ${address}, and this machine has ${advertiseIp}`]
      : []),
    ...(Math.abs(ageMs) < staleWindowMs ? [`it has reported ${formatDuration(Math.max(0, ageMs))} ago`] : []),
  ];
  if (signs.length === 0) return undefined;
  return `another machine seems to be node "${nodeId}": ${signs.join('; ')}: two of one id undo each other's work`;
}

/** Nothing where it cannot be read: it is for a warning only. */
async function readRecord(store: Store, key: string): Promise<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse((await store.get(key))?.text ?? '{}');
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

/** A node's role need not reach beyond its own entry, and the cluster's is there for deploys. */
function isOthers(error: unknown, key: string, clusterId: string): boolean {
  return error instanceof ReeveError && error.code === 'denied' && key === clusterKey(clusterId);
}

/** A store takes a missing directory for a missing mount, and fails; here is the one place that makes it. */
async function makeStoreDirectory(url: string): Promise<void> {
  if (!url.startsWith('file:')) return;
  const path = fileURLToPath(url);
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new ConfigError(`cannot make directory ${path}: ${describeError(error)}`, { cause: error });
  }
}

async function putAbsent(store: Store, key: string, body: string): Promise<boolean> {
  try {
    await store.put(key, body, { ifAbsent: true });
    return true;
  } catch (error) {
    if (error instanceof PreconditionError) return false;
    throw error;
  }
}
