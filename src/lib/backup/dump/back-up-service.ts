// One set of one service: its globals, then its databases, small ones first, each by itself, and the manifest. One that fails
// does not keep the others. Assumes the service's lock, so that nobody replaces the container meanwhile.
import type { NodeConfig } from '../../config/rules.ts';
import type { Context } from '../../context.ts';
import type { ContainerDetails } from '../../docker/types.ts';
import { describeError, StepError } from '../../errors.ts';
import type { DatabaseServer, DumpLimits, ServerAbout } from '../engine.ts';
import { findDatabaseEngine } from '../engines.ts';
import { tellError } from '../errors.ts';
import type { Manifest } from '../manifest.ts';
import { dumpKey, setKey, stampOf } from '../names.ts';
import { ensureOwnDirectory, openBackupStore } from '../place.ts';
import { type BackupTurn, chooseDatabases } from '../plan.ts';
import type { Attempt, DatabaseResult } from '../record.ts';
import type { ServiceBackups } from '../state.ts';
import { compress } from './capture.ts';
import { openSet, type SetWriter } from './set.ts';
import type { DumpDirectory } from './temp.ts';

export type BackupSession = {
  ctx: Context;
  cluster: NodeConfig;
  directory: DumpDirectory;
  limits: DumpLimits;
  /** When all of the run has to be over, in milliseconds since the epoch. */
  endsAt: number;
  /** Tells what takes time now, and for how long it may, in milliseconds. */
  tell(doing: string, forMs: number): Promise<void>;
};

export type ServiceOutcome =
  | { kind: 'deferred'; reason: string }
  /** It was told to stop: nothing of it is recorded, and the next run does all of it. */
  | { kind: 'interrupted' }
  | { kind: 'attempted'; attempt: Attempt; skipped: Manifest['skipped'] };

/** Throws nothing that the service's own container or store is the cause of: that is its outcome. */
export async function backUpService(
  session: BackupSession,
  turn: BackupTurn,
  about: { container: ContainerDetails; earlier: ServiceBackups | undefined },
): Promise<ServiceOutcome> {
  const { ctx } = session;
  const skipped: { database: string; reason: string }[] = [];
  const attempt = { key: turn.key, fire: turn.fire, isScheduled: turn.isScheduled };
  try {
    const server = openServer(session, turn, about.container);
    const refusal = await server.findRefusal();
    if (refusal !== undefined)
      return { kind: 'deferred', reason: `its database takes no connections: ${refusal}` };
    const result = await dumpServer({ session, turn, server, skipped, ...about });
    if (ctx.signal.aborted) return { kind: 'interrupted' };
    return { kind: 'attempted', attempt: { ...attempt, ...result }, skipped };
  } catch (error) {
    if (ctx.signal.aborted) return { kind: 'interrupted' };
    const failed = { ...attempt, databases: [], isListed: false, error: tellError(error) };
    return { kind: 'attempted', attempt: failed, skipped };
  }
}

function openServer(
  { ctx, cluster, limits }: BackupSession,
  turn: BackupTurn,
  container: ContainerDetails,
): DatabaseServer {
  const { database } = turn.service;
  if (database === undefined) throw new StepError('cannot back it up: it has no database');
  const { runId, signal } = ctx;
  const place = { socket: cluster.docker.socket, container, runId, signal, limits };
  return findDatabaseEngine(database.engine).open(place);
}

type Work = {
  session: BackupSession;
  turn: BackupTurn;
  server: DatabaseServer;
  container: ContainerDetails;
  earlier: ServiceBackups | undefined;
  /** Filled as soon as it is known. */
  skipped: { database: string; reason: string }[];
};

type SetResult = Pick<Attempt, 'databases' | 'isListed' | 'error'>;

async function dumpServer(work: Work): Promise<SetResult> {
  const { session, turn, server, skipped } = work;
  const { ctx } = session;
  const startedAt = ctx.clock.now();
  await server.endLeftovers();
  const about = await server.describe();
  const choice = chooseDatabases(about.databases, turn.service.database?.databases ?? []);
  skipped.push(...choice.skipped);
  if (choice.dumped.length + choice.failures.length === 0) {
    throw new StepError(
      "there is no database to dump but the server's own: name it in database.databases to have it",
    );
  }
  const { backup = { bucket: '', prefix: '' } } = turn.service;
  await ensureOwnDirectory(ctx.paths, backup.bucket);
  const { store, prefix } = await openBackupStore({ cluster: session.cluster, signal: ctx.signal }, backup);
  const stamp = stampOf(turn.fire);
  const { directory } = session;
  const set = openSet({ store, prefix, stamp, directory, signal: ctx.signal, log: ctx.log });
  const globals = await dumpGlobals(work, set, setKey(prefix, stamp, 'globals'));
  const databases: DatabaseResult[] = choice.failures.map((failure) => ({ kind: 'failed', ...failure }));
  for (const { name } of choice.dumped) {
    if (ctx.signal.aborted) break;
    databases.push(await dumpDatabase(work, set, { database: name, key: dumpKey(prefix, name, stamp) }));
  }
  const manifest = buildManifest(work, { about, startedAt, globals, databases });
  const error = ctx.signal.aborted ? undefined : await finishSet(set, manifest);
  // Without its manifest nothing proves a dump: what lists, verifies or prunes calls none of the set good.
  const results = error === undefined ? databases : databases.map((result) => failWith(result, error));
  return {
    ...{ databases: results, isListed: true },
    ...(globals.error === undefined ? {} : { error: globals.error }),
  };
}

function failWith(result: DatabaseResult, error: string): DatabaseResult {
  return result.kind === 'failed' ? result : { kind: 'failed', database: result.database, error };
}

type GlobalsResult = { globals?: Manifest['globals']; error?: string };

async function dumpGlobals({ session, server }: Work, set: SetWriter, key: string): Promise<GlobalsResult> {
  const dump = server.dumpGlobals();
  await session.tell('roles and tablespaces', session.limits.dumpMs);
  const source = { chunks: compress(dump.chunks), lastBytes: null, whenCaptured: () => dump.close('done') };
  try {
    const { sizeBytes, sha256 } = await set.write(key, source);
    return { globals: { key, sizeBytes, sha256, passwords: dump.passwords() } };
  } catch (error) {
    return { error: `roles and tablespaces: ${await settleFailure(error, dump)}` };
  }
}

async function dumpDatabase(
  { session, server, earlier }: Work,
  set: SetWriter,
  { database, key }: { database: string; key: string },
): Promise<DatabaseResult> {
  const { ctx, limits, endsAt } = session;
  if (Date.now() >= endsAt) return { kind: 'failed', database, error: 'this run has no time left for it' };
  await session.tell(`database ${JSON.stringify(database)}`, limits.dumpMs);
  const startedAt = performance.now();
  const dump = server.dumpDatabase(database);
  let tables: Awaited<ReturnType<typeof dump.countRows>> = [];
  const whenCaptured = async (): Promise<void> => {
    tables = await dump.countRows();
    await dump.close('done');
  };
  const last =
    earlier !== undefined && Object.hasOwn(earlier.databases, database)
      ? earlier.databases[database]
      : undefined;
  try {
    const captured = await set.write(key, {
      chunks: dump.chunks,
      lastBytes: last?.sizeBytes ?? null,
      whenCaptured,
    });
    const { sizeBytes, rawBytes, sha256 } = captured;
    const durationMs = Math.round(performance.now() - startedAt);
    ctx.log.info(`dumped ${JSON.stringify(database)}`, { key, sizeBytes, durationMs });
    return { kind: 'dumped', database, key, sizeBytes, rawBytes, sha256, durationMs, tables };
  } catch (error) {
    const told = await settleFailure(error, dump);
    ctx.log.error(`cannot dump ${JSON.stringify(database)}: ${told}`, { key });
    return { kind: 'failed', database, error: told };
  }
}

/** Ends what is left of it, and tells where that cannot be told to have ended. */
async function settleFailure(error: unknown, dump: { close(how: 'failed'): Promise<void> }): Promise<string> {
  try {
    await dump.close('failed');
    return tellError(error);
  } catch (second) {
    return `${tellError(error)}; ${describeError(second)}`;
  }
}

function buildManifest(
  { session, turn, container, skipped }: Work,
  made: { about: ServerAbout; startedAt: Date; globals: GlobalsResult; databases: readonly DatabaseResult[] },
): Manifest {
  const { project, service, database } = turn.service;
  const failures = made.databases.flatMap((result) =>
    result.kind === 'failed' ? [{ database: result.database, error: result.error }] : [],
  );
  const { globals, error } = made.globals;
  return {
    version: 1,
    ...{ project, service, nodeId: session.cluster.nodeId },
    engine: database?.engine ?? '',
    serverVersion: made.about.version,
    ...{ image: container.image, imageId: container.imageId },
    firedAt: turn.fire.toISOString(),
    startedAt: made.startedAt.toISOString(),
    endedAt: session.ctx.clock.now().toISOString(),
    ...(globals === undefined ? {} : { globals }),
    databases: made.databases.flatMap((result) => {
      if (result.kind === 'failed') return [];
      const { kind: _, durationMs: __, tables, ...record } = result;
      return [{ ...record, tables: [...tables] }];
    }),
    failures: [...(error === undefined ? [] : [{ database: null, error }]), ...failures],
    skipped: [...skipped],
  };
}

/** A set without a good dump is none, and says nothing. Why it could not be written is told. */
async function finishSet(set: SetWriter, manifest: Manifest): Promise<string | undefined> {
  if (manifest.databases.length === 0) return undefined;
  try {
    await set.writeManifest(manifest);
    return undefined;
  } catch (error) {
    return `its manifest: ${describeError(error)}`;
  }
}
