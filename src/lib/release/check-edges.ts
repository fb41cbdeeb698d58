// The edges that a deploy names: one that nobody looks after means that nobody routes to the service.
import { mapBounded } from '../bounded.ts';
import { nodeKey, reeveKey } from '../cluster/keys.ts';
import { InputError } from '../errors.ts';
import type { NodeListing } from '../store/nodes.ts';
import { parallel, type Target } from './gather.ts';
import { parseObject } from './json.ts';
import type { PlacedService } from './parse.ts';

type Known = ReadonlyMap<string, NodeListing>;

/**
 * A warning for each service whose edge is not in the store: it may still come. Throws InputError for a node that is no
 * edge: on a machine that is both, the edge has an id of its own.
 */
export async function checkEdges(
  target: Target,
  { file, services, known }: { file: string; services: readonly PlacedService[]; known: Known },
): Promise<string[]> {
  const named = [...new Set(services.flatMap(({ service }) => service.ingress?.edge ?? []))];
  const checked = await mapBounded(named, parallel, async (name) => ({
    name,
    isNode: await isOnlyNode(target, name, known.get(name)),
  }));
  const nodes = new Set(checked.flatMap(({ name, isNode }) => (isNode ? [name] : [])));
  const warnings: string[] = [];
  for (const { key, service } of services) {
    const name = service.ingress?.edge;
    if (name === undefined) continue;
    if (nodes.has(name)) {
      throw new InputError(
        `cannot deploy "${file}": "${name}", the edge of "${key}", is a node and no edge: ${describeEdges(name, known)}`,
      );
    }
    if (!known.has(name))
      warnings.push(`edge "${name}" of "${key}" is not in the store: nobody will route to the service`);
  }
  return warnings;
}

/** By the registry, unless it has told of itself as an edge since: a role can change. */
async function isOnlyNode(
  { store, clusterId }: Target,
  name: string,
  listing: NodeListing | undefined,
): Promise<boolean> {
  if (listing === undefined || listing.has('edge.json') || !listing.has('node.json')) return false;
  const entry = parseObject((await store.get(nodeKey(clusterId, name)))?.text);
  if (entry?.['role'] !== 'app') return false;
  if (!listing.has('reeve.json')) return true;
  const reeve = parseObject((await store.get(reeveKey(clusterId, name)))?.text);
  return reeve?.['edge'] === undefined;
}

function describeEdges(node: string, known: Known): string {
  const edges = [...known].filter(([, listing]) => listing.has('edge.json')).map(([name]) => name);
  const own = `${node}-edge`;
  if (edges.includes(own)) return `its edge is "${own}"`;
  if (edges.length === 0) return 'the store knows no edge';
  return `the store knows ${edges.map((name) => `"${name}"`).join(', ')}`;
}
