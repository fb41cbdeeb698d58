// The container that a database runs in.
import { managedFilter } from '../cluster/names.ts';
import { type DesiredService, serviceKey } from '../cluster/wire.ts';
import type { Paths } from '../config/paths.ts';
import type { ContainerDetails, Engine } from '../docker/types.ts';
import { ownershipDocument, stateFiles } from '../reconcile/documents.ts';
import { sortContainers } from '../reconcile/ownership.ts';
import type { Log } from '../report/log.ts';
import { readDocument } from '../state/document.ts';

export type FoundContainer = { container: ContainerDetails } | { missing: string };

/** That of the lowest replica that runs, if it is ours. Throws what the engine throws. */
export async function findDatabaseContainer(
  { engine, nodeId, paths, now, log }: { engine: Engine; nodeId: string; paths: Paths; now: Date; log: Log },
  service: DesiredService,
): Promise<FoundContainer> {
  const containers = await engine.listContainers({ labels: [managedFilter] });
  const known = { now, log, repair: false };
  const read = await readDocument(stateFiles(paths).ownership, ownershipDocument, known);
  const adopted = read.kind === 'ok' || read.kind === 'recovered' ? read.value.containers : [];
  const desired = { kind: 'document', updatedAt: '', services: [service], rejected: [] } as const;
  const key = serviceKey(service);
  const replicas = sortContainers(containers, { nodeId, adopted, desired }).replicas.filter(
    (replica) => serviceKey(replica) === key,
  );
  const running = replicas.filter(({ state }) => state === 'running').sort((a, b) => a.index - b.index)[0];
  if (running === undefined) {
    const states = replicas.map(({ state }) => state).join(', ');
    return { missing: states === '' ? 'it has no container' : `its container is ${states}` };
  }
  const container = await engine.inspectContainer(running.containerId);
  if (container === undefined) return { missing: 'its container has just gone' };
  return container.state === 'running' ? { container } : { missing: `its container is ${container.state}` };
}
