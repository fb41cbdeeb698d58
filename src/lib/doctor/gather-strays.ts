// Shards that nodes publish below this machine's own id although no edge reads them there: it is none, or has another id.
import { mapBounded } from '../bounded.ts';
import { upstreamPrefix } from '../cluster/keys.ts';
import type { ClusterConfig } from '../config/config.ts';
import { ReeveError } from '../errors.ts';
import { isRecord } from '../state/shape.ts';
import type { Store } from '../store/store.ts';

/** More nodes than this need not be asked to know that something is wrong. */
const mostRead = 50;

/** Domains that are routed nowhere, in byte order. None where the store does not let this node look. */
export async function gatherStrayDomains(
  store: Store,
  { clusterId, nodeId, edgeId, roles }: ClusterConfig,
): Promise<string[]> {
  const reads = roles.includes('edge') ? (edgeId ?? nodeId) : undefined;
  if (nodeId === undefined || reads === nodeId) return [];
  try {
    const entries = await store.list(upstreamPrefix(clusterId, nodeId));
    const texts = await mapBounded(entries.slice(0, mostRead), mostRead, async ({ key }) => {
      const stored = await store.get(key);
      return stored?.text ?? '{}';
    });
    return [...new Set(texts.flatMap(parseDomains))].sort();
  } catch (error) {
    if (!(error instanceof ReeveError)) throw error;
    return [];
  }
}

/** An edge that is left gets a shard without backends, and keeps it. */
function parseDomains(text: string): string[] {
  try {
    const shard: unknown = JSON.parse(text);
    const backends = isRecord(shard) && Array.isArray(shard['backends']) ? shard['backends'] : [];
    return backends.flatMap((one) =>
      isRecord(one) && typeof one['domain'] === 'string' ? one['domain'] : [],
    );
  } catch {
    return [];
  }
}
