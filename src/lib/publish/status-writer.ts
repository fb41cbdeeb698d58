// The one writer of status.json and reeve.json. What it published last is kept in published.json (an edge's in
// published-edge.json: one box may be both), so that nothing is written twice for no reason and `heartbeat` can repeat it.
// Holds the `status` lock over read, PUT and write.
import { join } from 'node:path';
import {
  decideWrite,
  statusFingerprint,
  type WriteDecision,
  type WriteRecord,
} from '../cluster/fingerprint.ts';
import { reeveKey, statusKey } from '../cluster/keys.ts';
import { type ReeveDocument, reeveFingerprint } from '../cluster/reeve-document.ts';
import { type NodeStatus, renderDocument } from '../cluster/wire.ts';
import type { ClusterConfig, Role } from '../config/config.ts';
import type { Paths } from '../config/paths.ts';
import type { Context } from '../context.ts';
import { UnavailableError } from '../errors.ts';
import type { CpuTimes } from '../host/parse.ts';
import { withLock } from '../lock/with-locks.ts';
import { defineDocument, readDocument, writeDocument } from '../state/document.ts';
import { isRecord, requireText } from '../state/shape.ts';
import type { Store } from '../store/store.ts';
import { chooseHost, type StatusHost, withHost } from './host.ts';

/**
 * What was published last: the body as sent, its fingerprints with the instants of the writes, what reeve.json tells of
 * failures, the counters of its sample.
 */
export type Published = {
  body: NodeStatus;
  status: WriteRecord;
  reeve: WriteRecord | null;
  failing?: readonly string[];
  cpu?: CpuTimes;
};

export type Publication = {
  status: NodeStatus;
  reeve: ReeveDocument;
  /** Write even if nothing has changed: a step was done, or the tick has failed. */
  force: boolean;
};

export type Publisher = { ctx: Context; cluster: ClusterConfig; store: Store; nodeId: string; role: Role };

/** A PUT takes the lock for no longer than this, in milliseconds; the heartbeat waits that long for it. */
const lockWaitMs = 12_000;

/** For one document; there are two at most under the lock, in milliseconds. */
const putDeadlineMs = 5_000;

const neverAborts = new AbortController().signal;

const publishedDocument = defineDocument<Published>({
  version: 1,
  parse: (raw) => {
    const reeve = raw['reeve'];
    return {
      body: parseBody(raw['body']),
      status: parseWriteRecord(raw['status']),
      reeve: isRecord(reeve) ? parseWriteRecord(reeve) : null,
      ...parseFailing(raw['failing']),
      ...parseCpuTimes(raw['cpu']),
    };
  },
});

/** Publishes what has changed, is forced, or is due for liveness. Throws UnavailableError when the store refuses. */
export async function publishStatus(publisher: Publisher, publication: Publication): Promise<void> {
  const known = await readPublished(publisher.ctx, publisher.role);
  if (!isDue(publisher, publication, known)) {
    logDecision(publisher, 'skip');
    return;
  }
  await underLock(publisher, async (previous) => await putDocuments(publisher, publication, previous));
}

/**
 * Puts the body that was published last again, with only what tells of life in it renewed. `check` is asked under the lock,
 * and throws where it must not be. False where nothing has been published yet.
 */
export async function repeatStatus(
  publisher: Publisher,
  { host, cpu }: StatusHost,
  check: () => Promise<void>,
): Promise<boolean> {
  const { ctx, cluster, store, nodeId } = publisher;
  let repeated = false;
  await underLock(publisher, async (previous) => {
    if (previous === undefined) return undefined;
    await check();
    const now = ctx.clock.now().toISOString();
    const services = previous.body.services.map((service) => ({ ...service, updatedAt: now }));
    const body = withHost({ ...previous.body, lastSeen: now, services }, host);
    await putDocument(store, statusKey(cluster.clusterId, nodeId), body);
    repeated = true;
    const status = { ...previous.status, lastWriteAt: now };
    return { ...previous, body, status, ...(cpu === undefined ? {} : { cpu }) };
  });
  return repeated;
}

/**
 * Repeats what was published last once that is old: for who knows that nothing has changed. False where nothing has been
 * published yet, or it tells of failures, which may be over.
 */
export async function repeatIfDue(publisher: Publisher): Promise<boolean> {
  const { ctx, cluster, role } = publisher;
  const known = await readPublished(ctx, role);
  if (known === undefined || (known.failing ?? []).length > 0) return false;
  const { fingerprint } = known.status;
  const decision = decideWrite(known.status, fingerprint, ctx.clock.now(), cluster.intervals.livenessMs);
  logDecision(publisher, decision);
  if (decision === 'skip') return true;
  return await repeatStatus(publisher, await chooseHost(ctx, known), async () => {});
}

/** What `work` makes of the last publication is the next one; undefined keeps it. */
async function underLock(
  { ctx, role }: Publisher,
  work: (previous: Published | undefined) => Promise<Published | undefined>,
): Promise<void> {
  const locked = async (): Promise<void> => {
    const next = await work(await readPublished(ctx, role, { repair: true }));
    if (next !== undefined) await writeDocument(publishedPath(ctx.paths, role), publishedDocument, next);
  };
  // Not ended by the signal: a run that is told to stop still says where it stands.
  await withLock({ ...ctx, signal: neverAborts }, 'status', locked, { waitMs: lockWaitMs });
}

/** `repair` sets a damaged file aside: only under the lock. */
export async function readPublished(
  ctx: Context,
  role: Role,
  { repair = false }: { repair?: boolean } = {},
): Promise<Published | undefined> {
  const options = { now: ctx.clock.now(), log: ctx.log, repair };
  const read = await readDocument(publishedPath(ctx.paths, role), publishedDocument, options);
  return read.kind === 'ok' || read.kind === 'recovered' ? read.value : undefined;
}

async function putDocuments(
  publisher: Publisher,
  publication: Publication,
  previous: Published | undefined,
): Promise<Published> {
  const { ctx, cluster, store, nodeId } = publisher;
  const now = ctx.clock.now().toISOString();
  const decision = decideStatus(publisher, publication, previous);
  logDecision(publisher, decision);
  const isWritten = decision !== 'skip' || previous === undefined;
  const { host, cpu } = isWritten
    ? await chooseHost(ctx, previous)
    : { host: previous.body.host ?? undefined, cpu: previous.cpu };
  const body = withHost(publication.status, host);
  let status = previous?.status;
  if (isWritten || status === undefined) {
    await putDocument(store, statusKey(cluster.clusterId, nodeId), body);
    status = { fingerprint: statusFingerprint(publication.status), lastWriteAt: now };
  }
  let reeve = previous?.reeve ?? null;
  const reeveMeaning = reeveFingerprint(publication.reeve);
  if (reeve?.fingerprint !== reeveMeaning) {
    await putDocument(store, reeveKey(cluster.clusterId, nodeId), publication.reeve);
    reeve = { fingerprint: reeveMeaning, lastWriteAt: now };
  }
  const failing = publication.reeve.failing.map(describeFailing);
  return {
    ...{ body, status, reeve },
    ...(failing.length === 0 ? {} : { failing }),
    ...(cpu === undefined ? {} : { cpu }),
  };
}

function describeFailing({ project, service, message }: ReeveDocument['failing'][number]): string {
  return service === '' ? message : `${project}/${service}: ${message}`;
}

/** A slow store must not keep the lock. A PUT that arrives late does no harm: the next one says the same or newer. */
async function putDocument(store: Store, key: string, document: NodeStatus | ReeveDocument): Promise<void> {
  const late = new Promise<never>((_, reject) => {
    const error = new UnavailableError(
      `cannot write "${key}" to ${store.url}: no answer in ${putDeadlineMs}ms`,
    );
    AbortSignal.timeout(putDeadlineMs).addEventListener('abort', () => reject(error));
  });
  await Promise.race([store.put(key, renderDocument(document)), late]);
}

function isDue(publisher: Publisher, publication: Publication, previous: Published | undefined): boolean {
  if (previous?.reeve?.fingerprint !== reeveFingerprint(publication.reeve)) return true;
  return decideStatus(publisher, publication, previous) !== 'skip';
}

function decideStatus(
  publisher: Publisher,
  publication: Publication,
  previous: Published | undefined,
): WriteDecision | 'forced' {
  if (publication.force) return 'forced';
  const { ctx, cluster } = publisher;
  const fingerprint = statusFingerprint(publication.status);
  return decideWrite(previous?.status, fingerprint, ctx.clock.now(), cluster.intervals.livenessMs);
}

function logDecision({ ctx, cluster }: Publisher, decision: WriteDecision | 'forced'): void {
  if (!cluster.debugStore) return;
  ctx.log.info(decision === 'skip' ? 'status skipped' : 'status written', { why: decision });
}

/** As far as it is worked with: the rest is repeated as it is. */
function parseBody(raw: unknown): NodeStatus {
  if (!isRecord(raw)) throw new TypeError('body is no object');
  const { services, caddy, edgeRoutes } = raw;
  if (!Array.isArray(services) || !services.every(isRecord))
    throw new TypeError('body has no list of services');
  if (!isRecord(caddy) || !Array.isArray(edgeRoutes) || !edgeRoutes.every(isRecord))
    throw new TypeError('body tells nothing of an edge');
  return raw as unknown as NodeStatus;
}

function parseWriteRecord(raw: unknown): WriteRecord {
  return { fingerprint: requireText(raw, 'fingerprint'), lastWriteAt: requireText(raw, 'lastWriteAt') };
}

function parseFailing(raw: unknown): { failing?: readonly string[] } {
  const isText = (one: unknown): one is string => typeof one === 'string';
  return Array.isArray(raw) && raw.every(isText) ? { failing: raw } : {};
}

/** Only for a percentage: counters that cannot be read are left out. */
function parseCpuTimes(raw: unknown): { cpu?: CpuTimes } {
  if (!isRecord(raw)) return {};
  const { busy, total } = raw;
  return typeof busy === 'number' && typeof total === 'number' ? { cpu: { busy, total } } : {};
}

function publishedPath(paths: Paths, role: Role): string {
  return join(paths.stateDir, role === 'app' ? 'published.json' : 'published-edge.json');
}
