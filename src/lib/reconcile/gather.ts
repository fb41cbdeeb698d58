// Reads the world into Facts: one engine request, a handful of small files, and the store where it may have changed.
import { parseDesired } from '../cluster/desired.ts';
import { desiredKey, removalsKey } from '../cluster/keys.ts';
import { managedFilter } from '../cluster/names.ts';
import { portKey } from '../cluster/ports.ts';
import { serviceKey } from '../cluster/wire.ts';
import { InputError } from '../errors.ts';
import { readHolds } from '../hold/holds.ts';
import { isRecord } from '../state/shape.ts';
import { findEdgesToAsk } from './acknowledgement.ts';
import { readApplied } from './applied.ts';
import { readBackups } from './backups.ts';
import {
  type DesiredFacts,
  emptyServiceRecord,
  type Facts,
  type NodeFacts,
  type Replica,
  type RolloutRecord,
} from './facts.ts';
import { sortContainers } from './ownership.ts';
import type { Session } from './session.ts';

/** Reads desired.json again. Throws UnavailableError (store) and InputError (a document we refuse). */
export async function readDesired(session: Session): Promise<void> {
  const key = desiredKey(session.cluster.clusterId, session.nodeId);
  const stored = await session.store.get(key);
  if (stored === undefined) {
    const reason = `no desired state for node ${session.nodeId} in ${session.store.url}`;
    session.desired = { kind: 'none', reason };
    return;
  }
  const parsed = parseDesired(stored.text);
  const { nodeId } = parsed.document;
  if (nodeId !== session.nodeId) {
    throw new InputError(
      `cannot read "desired.json": it is for node ${nodeId}, and this is node ${session.nodeId}`,
    );
  }
  for (const warning of parsed.warnings) session.ctx.log.warning(warning);
  const { desired } = session;
  if (desired.kind === 'document' && desired.updatedAt !== parsed.document.updatedAt)
    session.secrets.forget();
  session.desired = {
    kind: 'document',
    updatedAt: parsed.document.updatedAt,
    services: parsed.services,
    rejected: parsed.rejected,
  };
}

export async function gatherFacts(session: Session): Promise<Facts> {
  const { ctx, desired } = session;
  // Turns go on while the engine is asked, and one that ends meanwhile has made the list old: its service is not planned
  // from it, and nothing that was recorded before counts as settled.
  const busy = new Set(session.busy);
  const recordBefore = session.rollouts.value;
  const containers = await session.engine.listContainers({ labels: [managedFilter] });
  const sorted = sortContainers(containers, {
    nodeId: session.nodeId,
    adopted: hasAdopted(session) ? session.ownership.value.containers : undefined,
    desired,
  });
  if (!hasAdopted(session) && desired.kind === 'document') await adopt(session, sorted.adopting);
  await keepPorts(session, sorted.replicas);
  const { replicas } = sorted;
  const finishedAt = await lookUpEnds(session, replicas);
  const shards = session.shards.value.edges;
  const asked = findEdgesToAsk({ record: session.rollouts.value, replicas, shards });
  const applied = await readApplied(session, asked);
  return {
    now: ctx.clock.now(),
    node: nodeFacts(session),
    desired,
    replicas,
    strangers: sorted.strangers,
    record: keepRecorded(session.rollouts.value, recordBefore, busy),
    cron: session.cron.value,
    backups: await readBackups(session),
    finishedAt,
    ports: session.ports.value.ports,
    routingPublished: false,
    shards,
    applied,
    probes: session.probes,
    holds: await readHolds(ctx.paths, ctx.clock.now(), ctx.log),
    announcedRemovals: hasUndesired(desired, replicas.map(serviceKey)) ? await readAnnounced(session) : [],
    busy,
    stopsAsked: session.stopsAsked,
    rechecked: session.rechecked,
  };
}

/** The record as it is now, with what it held before of the services that were busy then. */
function keepRecorded(now: RolloutRecord, before: RolloutRecord, busy: ReadonlySet<string>): RolloutRecord {
  if (now === before || busy.size === 0) return now;
  const services = { ...now.services };
  for (const key of busy) {
    const { replicas, failures } = now.services[key] ?? emptyServiceRecord;
    services[key] = { replicas: { ...before.services[key]?.replicas, ...replicas }, failures };
  }
  return { services };
}

/** A port in use is reserved, also after ports.json was lost: a stopped replica must find its own again. */
async function keepPorts(session: Session, replicas: readonly Replica[]): Promise<void> {
  const known = session.ports.value.ports;
  const unknown = replicas.filter(
    (replica) => replica.hostPort !== undefined && known[portKey(replica)] === undefined,
  );
  if (unknown.length === 0) return;
  const found = Object.fromEntries(unknown.map((replica) => [portKey(replica), replica.hostPort as number]));
  await session.ports.update(({ ports }) => ({ ports: { ...found, ...ports } }));
}

/** The list of containers does not tell: one request for each one-off run that has ended, and what it says is kept. */
async function lookUpEnds(
  { engine, openEnds }: Session,
  replicas: readonly Replica[],
): Promise<ReadonlyMap<string, string>> {
  const ended = replicas.filter(({ jobRun, state }) => jobRun !== undefined && state === 'exited');
  if (ended.length === 0) return new Map();
  const ledger = await openEnds();
  const ends: Record<string, string> = {};
  for (const { containerId } of ended) {
    const known = ledger.value.ends[containerId];
    const finishedAt = known ?? (await engine.inspectContainer(containerId))?.finishedAt?.toISOString();
    if (finishedAt !== undefined) ends[containerId] = finishedAt;
  }
  // Those of containers that are gone are left out, so that the file does not grow.
  await ledger.update((before) => (hasSameKeys(before.ends, ends) ? before : { ends }));
  return new Map(Object.entries(ends));
}

function hasSameKeys(left: object, right: object): boolean {
  const keys = Object.keys(left);
  return keys.length === Object.keys(right).length && keys.every((key) => key in right);
}

/** The one adoption has been: by an earlier run, or by an earlier look of this one. */
function hasAdopted(session: Session): boolean {
  return session.ownership.value.adoptedAt !== '';
}

async function adopt(session: Session, containers: readonly string[]): Promise<void> {
  const adoptedAt = session.ctx.clock.now().toISOString();
  if (containers.length > 0) {
    session.ctx.log.info(`adopting ${containers.length} containers of launch-pad's agent`);
  }
  await session.ownership.update(() => ({ adoptedAt, containers }));
}

/** Where a port that is bound to all addresses is reached from here. */
const loopbacks: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

function nodeFacts(session: Session): NodeFacts {
  const { publish, intervals } = session.cluster;
  const address = publish === 'advertise' ? session.privateIp : publish;
  return {
    nodeId: session.nodeId,
    drainFloorMs: Math.ceil(intervals.edgeMs * 1.5),
    privateIp: session.privateIp,
    probeHost: loopbacks[address] ?? address,
  };
}

function hasUndesired(desired: DesiredFacts, keys: readonly string[]): boolean {
  if (desired.kind === 'none') return false;
  const wanted = new Set(desired.services.map(serviceKey));
  return keys.some((key) => !wanted.has(key));
}

async function readAnnounced(session: Session): Promise<readonly string[]> {
  const stored = await session.store.get(removalsKey(session.cluster.clusterId, session.nodeId));
  if (stored === undefined) return [];
  try {
    const raw: unknown = JSON.parse(stored.text);
    const services = isRecord(raw) && raw['version'] === 1 ? raw['services'] : [];
    return Array.isArray(services) ? services.filter((key) => typeof key === 'string') : [];
  } catch {
    // Unreadable means unannounced: the brake then asks a person.
    session.ctx.log.warning(
      `ignoring ${removalsKey(session.cluster.clusterId, session.nodeId)}: it is no JSON`,
    );
    return [];
  }
}
