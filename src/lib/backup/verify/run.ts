// `backup verify`: how far the newest set of each service is proven. It changes neither dumps nor manifests; what it finds is
// written beside them and into backups.json, afterwards: a run that is killed has only looked.
import { type DesiredService, renderDocument, serviceKey } from '../../cluster/wire.ts';
import { type NodeConfig, requireRole } from '../../config/rules.ts';
import type { Context } from '../../context.ts';
import { openEngine } from '../../docker/client.ts';
import type { Engine } from '../../docker/types.ts';
import { describeError, InputError } from '../../errors.ts';
import { withLock } from '../../lock/with-locks.ts';
import type { Outcome } from '../../outcome.ts';
import { writeDocument } from '../../state/document.ts';
import { appendHistory } from '../../state/history.ts';
import { type RunTeller, recordRun } from '../../state/record-run.ts';
import { findDatabaseContainer } from '../container.ts';
import { openDumpDirectory } from '../dump/temp.ts';
import { type DumpLimits, defaultLimits } from '../engine.ts';
import { type BackupWorld, gatherBackups } from '../gather.ts';
import { type BackupSet, readInventory } from '../inventory.ts';
import type { Manifest } from '../manifest.ts';
import { setKey } from '../names.ts';
import { openBackupStore } from '../place.ts';
import { type BackupsDocument, backupsDocument, backupsPath } from '../state.ts';
import { buildEvidence, chooseSet, recordFindings } from './record.ts';
import { renderVerify, toVerifyEvent, type VerifiedService } from './render.ts';
import { sweepScratch } from './scratch.ts';
import { requireTime, type SetFindings, type VerifySession, verifySet } from './set.ts';

export type VerifyOptions = {
  /** `PROJECT/SERVICE` */
  only?: string;
  /** The stamp of a set. */
  stamp?: string;
  restores: boolean;
  waitMs: number;
  limits?: Partial<DumpLimits>;
};

/** In which looks at dumps begin; the unit's own time limit lies above it. In milliseconds. */
export const verifyMs = 10 * 60 * 60_000;

/** Throws BusyError while another run of backups is under way. */
export async function runVerify(ctx: Context, options: VerifyOptions): Promise<Outcome> {
  const cluster = requireRole(ctx.config, 'app', 'backup verify');
  const work = (run: RunTeller): Promise<Outcome> => verify(ctx, cluster, options, run);
  const { waitMs } = options;
  return await withLock(ctx, 'backup', () => recordRun(ctx, 'backup-verify', work), { waitMs });
}

async function verify(
  ctx: Context,
  cluster: NodeConfig,
  options: VerifyOptions,
  run: RunTeller,
): Promise<Outcome> {
  const directory = await openDumpDirectory(ctx.paths, ctx.runId);
  const { nodeId, docker } = cluster;
  const engine = openEngine({ socket: docker.socket, log: ctx.log, signal: ctx.signal });
  const tell = async (name: string, forMs: number): Promise<void> => {
    const now = ctx.clock.now();
    const deadlineAt = new Date(now.getTime() + forMs).toISOString();
    await run.tell({ name, startedAt: now.toISOString(), deadlineAt });
  };
  const limits = { ...defaultLimits, ...options.limits };
  const endsAt = ctx.clock.now().getTime() + verifyMs;
  const session = { ctx, engine, nodeId, socket: docker.socket, limits, directory, tell, endsAt };
  try {
    if (options.restores) await sweepScratch(session);
    const world = await gatherBackups(ctx, cluster);
    const services = chooseServices(world, options);
    return await verifyAll({ ...session, restores: options.restores }, { cluster, options, world, services });
  } finally {
    engine.close();
  }
}

/** Throws InputError where the one that is named has no backup. */
function chooseServices(world: BackupWorld | undefined, { only }: VerifyOptions): DesiredService[] {
  const services = (world?.facts.services ?? []).filter(({ backup }) => backup !== undefined);
  if (only === undefined) return services;
  const named = services.filter((service) => serviceKey(service) === only);
  if (named.length > 0) return named;
  throw new InputError(
    `cannot verify backups of ${only}: it is not desired on this node, or has no \`backup\``,
  );
}

async function verifyAll(
  session: VerifySession,
  about: {
    cluster: NodeConfig;
    options: VerifyOptions;
    world: BackupWorld | undefined;
    services: readonly DesiredService[];
  },
): Promise<Outcome> {
  const { ctx } = session;
  const results: VerifiedService[] = [];
  let document = about.world?.document;
  for (const service of about.services) {
    const { verified, change } = await verifyService(session, service, about).catch((error: unknown) => {
      requireTime(ctx.signal);
      const failed = { ...nameOf(service), error: describeError(error) };
      return { verified: failed as VerifiedService, change: undefined };
    });
    results.push(verified);
    if (change === undefined || document === undefined) continue;
    document = change(document);
    await writeDocument(backupsPath(ctx.paths), backupsDocument, document);
  }
  return renderVerify(results);
}

function nameOf({ project, service }: DesiredService): { project: string; service: string } {
  return { project, service };
}

type ServiceResult = {
  verified: VerifiedService;
  change?: (document: BackupsDocument) => BackupsDocument;
};

async function verifyService(
  session: VerifySession,
  service: DesiredService,
  { cluster, options }: { cluster: NodeConfig; options: VerifyOptions },
): Promise<ServiceResult> {
  const { ctx, engine } = session;
  const name = nameOf(service);
  const { backup = { bucket: '', prefix: '' } } = service;
  const place = await openBackupStore({ cluster, signal: ctx.signal }, backup);
  const inventory = await readInventory(place.store, place.prefix);
  const set = chooseSet(inventory, options.stamp);
  if (set === undefined) return { verified: requireNone(name, options.stamp) };
  const manifest = requireManifest(set);
  const dumps = inventory.dumps.filter(({ stamp }) => stamp === set.stamp);
  const env = session.restores ? await readEnv(session, engine, service) : [];
  const findings = await verifySet(session, { service, place, manifest, dumps, env });
  const checkedAt = ctx.clock.now();
  const evidence = buildEvidence(findings, { dumps, checkedAt });
  await place.store.put(setKey(place.prefix, set.stamp, 'evidence'), renderDocument(evidence));
  const verified = { ...name, stamp: set.stamp, findings };
  tellAll(ctx, verified, findings);
  await appendHistory(ctx.paths, [toVerifyEvent(verified, { at: checkedAt, runId: ctx.runId })]);
  const about = { at: set.at, checkedAt, databases: findings.databases };
  return { verified, change: (document) => recordFindings(document, serviceKey(service), about) };
}

/** Without a stamp, a service whose first backup is still to come is none to complain of. */
function requireNone(name: { project: string; service: string }, stamp: string | undefined): VerifiedService {
  if (stamp === undefined) return name;
  return { ...name, error: `there is no set of ${stamp}` };
}

function requireManifest({ stamp, manifest, fault }: BackupSet): Manifest {
  if (manifest !== undefined) return manifest;
  throw new InputError(`cannot verify the set of ${stamp}: its manifest ${fault ?? 'is not there'}`);
}

/** A server is set up as the one that runs; where none does, as its definition says. */
async function readEnv(
  { ctx, nodeId }: VerifySession,
  engine: Engine,
  service: DesiredService,
): Promise<readonly string[]> {
  const about = { engine, nodeId, paths: ctx.paths, now: ctx.clock.now(), log: ctx.log };
  const found = await findDatabaseContainer(about, service).catch(() => ({ missing: '' }));
  if ('container' in found) return found.container.env;
  return Object.entries(service.env).map(([name, value]) => `${name}=${value}`);
}

function tellAll({ log }: Context, { project, service, stamp }: VerifiedService, found: SetFindings): void {
  for (const { database, finding } of found.databases) {
    const about = { service: `${project}/${service}`, set: stamp };
    const shown = JSON.stringify(database);
    if (finding.kind === 'unknown') log.error(`${shown} could not be looked at: ${finding.error}`, about);
    else if (finding.error !== undefined) log.error(`${shown} is ${finding.level}: ${finding.error}`, about);
    else log.info(`${shown} is ${finding.level}`, about);
  }
}
