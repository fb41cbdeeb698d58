// `backup restore`: one dump into a database of the running container. It goes into a database of its own, is counted there, and
// takes the target's name and place only when all is well: whatever fails leaves the target as it was.
import { rm } from 'node:fs/promises';
import type { DesiredService } from '../../cluster/wire.ts';
import { type NodeConfig, requireRole } from '../../config/rules.ts';
import type { Context } from '../../context.ts';
import { openEngine } from '../../docker/client.ts';
import type { Engine } from '../../docker/types.ts';
import { describeError, InputError, StepError } from '../../errors.ts';
import { serviceLock } from '../../lock/names.ts';
import { withLock } from '../../lock/with-locks.ts';
import type { Outcome } from '../../outcome.ts';
import { confirm } from '../../report/confirm.ts';
import { appendHistory } from '../../state/history.ts';
import { findDatabaseContainer } from '../container.ts';
import { type DumpDirectory, openDumpDirectory, requireSpace } from '../dump/temp.ts';
import {
  type DatabaseEngine,
  type DatabaseRestorer,
  type DatabaseServer,
  type DumpLimits,
  defaultLimits,
} from '../engine.ts';
import { findDatabaseEngine } from '../engines.ts';
import { BrokenError, fetchObject, readEnd, readGlobals } from '../fetch.ts';
import { readInventory } from '../inventory.ts';
import { type BackupPlace, openBackupStore } from '../place.ts';
import { readBackedUp } from '../services.ts';
import { type ChosenDump, chooseDump, requireTargetName } from './choice.ts';
import { loadDump, requireServerSpace } from './load.ts';
import { type Restored, renderRestored, toRestoreEvent } from './render.ts';

export type RestoreOptions = {
  /** `PROJECT/SERVICE` */
  key: string;
  /** Whose dump. */
  database: string;
  /** What it is restored into. */
  target: string;
  /** Of a set. */
  stamp?: string;
  /** A target that is not empty is replaced. */
  replaces: boolean;
  /** Roles that are missing are made first. */
  restoresRoles: boolean;
  yes: boolean;
  waitMs: number;
  limits?: Partial<DumpLimits>;
};

type Session = {
  ctx: Context;
  cluster: NodeConfig;
  service: DesiredService;
  place: BackupPlace;
  chosen: ChosenDump;
  options: RestoreOptions;
};

/** Throws InputError for what it refuses, StepError where the restore fails, BusyError. */
export async function runRestore(ctx: Context, options: RestoreOptions): Promise<Outcome> {
  const cluster = requireRole(ctx.config, 'app', 'backup restore');
  const [service] = await readBackedUp(ctx, cluster, options.key);
  if (service === undefined) throw new InputError(`cannot restore into ${options.key}: it has no backups`);
  requireTargetName(requireEngine(service), options.target);
  const place = await openBackupStore({ cluster, signal: ctx.signal }, service.backup);
  const chosen = chooseDump(await readInventory(place.store, place.prefix), options);
  requireGlobals(chosen, options);
  const session = { ctx, cluster, service, place, chosen, options };
  if (!(await confirmReplacing(session))) {
    return { outcome: 'nothing-to-do', text: ['not confirmed: nothing was restored'] };
  }
  const { waitMs } = options;
  return await withLock(
    ctx,
    'backup',
    () => withLock(ctx, serviceLock(service), () => restoreRecorded(session), { waitMs }),
    { waitMs },
  );
}

function requireEngine({ database }: DesiredService): DatabaseEngine {
  if (database !== undefined) return findDatabaseEngine(database.engine);
  throw new InputError('cannot restore: the service has no database');
}

function requireGlobals({ manifest, dump }: ChosenDump, { restoresRoles }: RestoreOptions): void {
  if (!restoresRoles || manifest?.globals !== undefined) return;
  throw new InputError(`cannot restore roles: there are none beside the dump of ${dump.stamp}`);
}

async function confirmReplacing({ ctx, chosen, options }: Session): Promise<boolean> {
  if (!options.replaces) return true;
  const { target, key, yes } = options;
  const what = `database ${JSON.stringify(target)} of ${key}`;
  const by = `the dump of ${JSON.stringify(chosen.dump.database)} of ${chosen.dump.stamp}`;
  return await confirm(ctx, yes, `Replace ${what} by ${by}?`);
}

async function restoreRecorded(session: Session): Promise<Outcome> {
  const { ctx, chosen, options } = session;
  const about = { key: options.key, target: options.target, chosen };
  // What came of it is told in any case, also where its history cannot be written.
  const record = async (error?: string): Promise<void> => {
    const how = { at: ctx.clock.now(), runId: ctx.runId, ...(error === undefined ? {} : { error }) };
    await appendHistory(ctx.paths, [toRestoreEvent(about, how)]).catch((second: unknown) => {
      ctx.log.warning(`cannot record the restore: ${describeError(second)}`);
    });
  };
  const restored = await restore(session).catch(async (error: unknown) => {
    await record(describeError(error));
    throw explain(error, session);
  });
  await record();
  return renderRestored(restored);
}

/** What was refused says so by itself. */
function explain(error: unknown, { chosen: { dump } }: Session): unknown {
  if (!(error instanceof StepError)) return error;
  const of = `${JSON.stringify(dump.database)} of ${dump.stamp}`;
  const what = error instanceof BrokenError ? 'its dump is broken: ' : '';
  return new StepError(`cannot restore ${of}: ${what}${error.message}`, { code: error.code, cause: error });
}

async function restore(session: Session): Promise<Restored> {
  const { ctx, cluster, service } = session;
  const engine = openEngine({ socket: cluster.docker.socket, log: ctx.log, signal: ctx.signal });
  try {
    const directory = await openDumpDirectory(ctx.paths, ctx.runId);
    const server = await openServer(session, engine, service);
    await server.endLeftovers();
    await server.restorer.dropLeftovers();
    return await restoreInto(session, server.restorer, directory);
  } finally {
    engine.close();
  }
}

async function openServer(
  { ctx, cluster, options }: Session,
  engine: Engine,
  service: DesiredService,
): Promise<DatabaseServer> {
  const { nodeId, docker } = cluster;
  const about = { engine, nodeId, paths: ctx.paths, now: ctx.clock.now(), log: ctx.log };
  const found = await findDatabaseContainer(about, service);
  if ('missing' in found) throw new StepError(found.missing);
  const { runId, signal } = ctx;
  const limits = { ...defaultLimits, ...options.limits };
  const place = { socket: docker.socket, container: found.container, runId, signal, limits };
  const server = requireEngine(service).open(place);
  const refusal = await server.findRefusal();
  if (refusal !== undefined) throw new StepError(`the database takes no connections: ${refusal}`);
  return server;
}

async function restoreInto(
  session: Session,
  restorer: DatabaseRestorer,
  directory: DumpDirectory,
): Promise<Restored> {
  const { ctx, chosen, options } = session;
  const { target, key } = options;
  const found = await restorer.findDatabase(target);
  requireTarget(found, options);
  const path = directory.next();
  try {
    const rawBytes = await fetchChosen(session, restorer, { directory, path });
    await requireServerSpace(restorer, rawBytes);
    const { made, tablespaces } = await restoreGlobals(session, restorer, directory);
    ctx.log.info(`restoring ${JSON.stringify(chosen.dump.database)} of ${chosen.dump.stamp}`, {
      key: chosen.dump.key,
    });
    const how = found === undefined ? {} : { like: target };
    const { name, ...loaded } = await loadDump(restorer, path, { tables: chosen.record?.tables, ...how });
    await takePlace(restorer, { name, target, replaces: found !== undefined });
    const replaced = found !== undefined && !found.isEmpty;
    const notes = [...noteAll(chosen, tablespaces), ...(await noteUnrestricted(restorer))];
    return { key, target, chosen, loaded, replaced, roles: made, notes };
  } finally {
    await rm(path, { force: true });
  }
}

/** Throws InputError. */
function requireTarget(
  found: Awaited<ReturnType<DatabaseRestorer['findDatabase']>>,
  { target, replaces }: RestoreOptions,
): void {
  if (found === undefined) return;
  const cannot = `cannot restore into ${JSON.stringify(target)}`;
  if (found.refusal !== undefined) throw new InputError(`${cannot}: ${found.refusal}`);
  if (found.isEmpty || replaces) return;
  throw new InputError(`${cannot}: it is not empty; say --force to replace it, or --to for another one`);
}

/** The size of its text, in bytes. Nothing has been touched in the server before it is known to be whole. */
async function fetchChosen(
  { ctx, place: { store }, chosen: { dump, record } }: Session,
  restorer: DatabaseRestorer,
  { directory, path }: { directory: DumpDirectory; path: string },
): Promise<number> {
  await requireSpace(directory, dump.sizeBytes);
  const { rawBytes } = await fetchObject(store, dump.key, { path, expected: record });
  if (record === undefined && !restorer.isEnd(await readEnd(path, ctx.signal))) {
    throw new BrokenError('it ends before the dump does');
  }
  return rawBytes;
}

async function restoreGlobals(
  { place: { store }, chosen: { manifest }, options }: Session,
  restorer: DatabaseRestorer,
  directory: DumpDirectory,
): Promise<{ made: readonly string[]; tablespaces: readonly string[] }> {
  const globals = manifest?.globals;
  if (!options.restoresRoles || globals === undefined) return { made: [], tablespaces: [] };
  const path = directory.next();
  try {
    await fetchObject(store, globals.key, { path, expected: globals });
    return await restorer.restoreRoles(await readGlobals(path));
  } finally {
    await rm(path, { force: true });
  }
}

async function takePlace(
  restorer: DatabaseRestorer,
  { name, target, replaces }: { name: string; target: string; replaces: boolean },
): Promise<void> {
  try {
    await restorer.renameDatabase(name, target, { replaces });
  } catch (error) {
    await restorer.dropDatabase(name).catch(() => {});
    throw error;
  }
}

async function noteUnrestricted(restorer: DatabaseRestorer): Promise<string[]> {
  if (await restorer.restrictsText()) return [];
  return ['psql in the container knows no \\restrict: what a dump names it runs'];
}

function noteAll({ record, dump }: ChosenDump, tablespaces: readonly string[]): string[] {
  const unproven = `nothing says what the dump of ${dump.stamp} has to have: it has no manifest, and is unproven`;
  const made = `tablespaces are not made: ${tablespaces.map((name) => JSON.stringify(name)).join(', ')}`;
  return [...(record === undefined ? [unproven] : []), ...(tablespaces.length === 0 ? [] : [made])];
}
