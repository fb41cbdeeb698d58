// One run of `backup`: what is due, service by service, each under its own lock. An attempt is recorded after it was made: a run
// that is killed makes the same set again, under the same keys.
import { type NodeConfig, requireRole } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { openEngine } from '../docker/client.ts';
import type { Engine } from '../docker/types.ts';
import { BusyError, describeError, InputError } from '../errors.ts';
import { holdFor, readHolds } from '../hold/holds.ts';
import { serviceLock } from '../lock/names.ts';
import { withLock } from '../lock/with-locks.ts';
import type { Outcome } from '../outcome.ts';
import { writeDocument } from '../state/document.ts';
import { appendHistory } from '../state/history.ts';
import { type RunTeller, recordRun } from '../state/record-run.ts';
import { findDatabaseContainer } from './container.ts';
import { type BackupSession, backUpService, type ServiceOutcome } from './dump/back-up-service.ts';
import { openDumpDirectory } from './dump/temp.ts';
import { type DumpLimits, defaultLimits } from './engine.ts';
import { gatherBackups } from './gather.ts';
import { type BackupOptions, type BackupTurn, describeHold, planBackups } from './plan.ts';
import { forgetOthers, recordAnchors, recordAttempt, recordSchedules } from './record.ts';
import { renderBackup, type TurnResult, toEvents } from './render.ts';
import { pruneService } from './retention/run.ts';
import { type BackedUp, hasBackup } from './services.ts';
import { type BackupsDocument, backupsDocument, backupsPath } from './state.ts';

export type BackupRun = BackupOptions & { waitMs: number; limits?: Partial<DumpLimits> };

/** Within so long after its start a run begins dumps; the unit's own limit is higher. In milliseconds. */
export const runMs = 10 * 60 * 60_000;
/** Until a run tells what it does. */
const firstStepMs = 60_000;

/** Throws BusyError while another run is under way. */
export async function runBackup(ctx: Context, options: BackupRun): Promise<Outcome> {
  const cluster = requireRole(ctx.config, 'app', 'backup');
  const step = stepAt(ctx, 'starting', firstStepMs);
  const work = (run: RunTeller): Promise<Outcome> => backUp(ctx, cluster, options, run);
  return await withLock(ctx, 'backup', () => recordRun(ctx, 'backup', work, { step }), {
    waitMs: options.waitMs,
  });
}

function stepAt({ clock }: Context, name: string, forMs: number) {
  const now = clock.now();
  return { name, startedAt: now.toISOString(), deadlineAt: new Date(now.getTime() + forMs).toISOString() };
}

async function backUp(
  ctx: Context,
  cluster: NodeConfig,
  options: BackupRun,
  run: RunTeller,
): Promise<Outcome> {
  const directory = await openDumpDirectory(ctx.paths, ctx.runId);
  const world = await gatherBackups(ctx, cluster);
  if (world === undefined) {
    const reason = `no desired state for node ${cluster.nodeId} in ${cluster.store}`;
    return { outcome: 'nothing-to-do', text: [`nothing to back up: ${reason}`], data: { services: [] } };
  }
  const plan = planBackups({ ...world.facts, anchors: world.document.anchors }, options);
  if (options.only !== undefined) requireBackup(world.facts.services, options.only);
  for (const { key, why } of plan.anchored) ctx.log.info(`${key}: ${why}`);
  const ledger = openBackups(ctx, world.document);
  await ledger.update((document) => {
    const anchored = plan.anchored.map(({ key }) => key);
    const { services, now } = world.facts;
    const recorded = recordSchedules(recordAnchors(document, anchored, now), services, world.known);
    return world.known === undefined ? recorded : forgetOthers(recorded, world.known);
  });
  const endsAt = ctx.clock.now().getTime() + runMs;
  const limits = { ...defaultLimits, ...options.limits };
  const tell = (doing: string, forMs: number): Promise<void> => run.tell(stepAt(ctx, doing, forMs));
  const session: BackupSession = { ctx, cluster, directory, limits, endsAt, tell };
  const waitMs = options.isNow ? options.waitMs : 0;
  const all = world.facts.services.filter(hasBackup);
  const results = await takeTurns(session, plan.due, { ledger, waitMs, all });
  return renderBackup({ plan, results, document: ledger.value, now: ctx.clock.now(), isNow: options.isNow });
}

function requireBackup(
  services: readonly { project: string; service: string; backup?: unknown }[],
  only: string,
): void {
  const service = services.find(({ project, service: name }) => `${project}/${name}` === only);
  if (service?.backup !== undefined) return;
  const cause = service === undefined ? 'it is not desired on this node' : 'it has no `backup`';
  throw new InputError(`cannot back up ${only}: ${cause}`);
}

type Backups = {
  readonly value: BackupsDocument;
  update(change: (value: BackupsDocument) => BackupsDocument): Promise<void>;
};

function openBackups({ paths }: Context, document: BackupsDocument): Backups {
  let value = document;
  return {
    get value() {
      return value;
    },
    update: async (change) => {
      const changed = change(value);
      if (changed === value) return;
      await writeDocument(backupsPath(paths), backupsDocument, changed);
      value = changed;
    },
  };
}

async function takeTurns(
  session: BackupSession,
  turns: readonly BackupTurn[],
  how: { ledger: Backups; waitMs: number; all: readonly BackedUp[] },
): Promise<TurnResult[]> {
  const { ctx, cluster } = session;
  const results: TurnResult[] = [];
  const failures: unknown[] = [];
  if (turns.length === 0) return results;
  const engine = openEngine({ socket: cluster.docker.socket, log: ctx.log, signal: ctx.signal });
  try {
    for (const turn of turns) {
      if (ctx.signal.aborted) break;
      try {
        const outcome = await takeTurn(session, engine, turn, how);
        results.push({ turn, outcome });
        await pruneAfter(session, { turn, outcome }, { recorded: how.ledger.value, all: how.all });
      } catch (error) {
        if (ctx.signal.aborted) throw error;
        ctx.log.error(describeError(error), { service: turn.key });
        failures.push(error);
      }
    }
  } finally {
    engine.close();
  }
  // Others have had their turn by then.
  if (failures.length > 0) throw failures[0];
  return results;
}

/** Old dumps go only behind new ones, and only those of the databases that have one. */
async function pruneAfter(
  { ctx, cluster }: BackupSession,
  { turn: { service }, outcome }: TurnResult,
  known: { recorded: BackupsDocument; all: readonly BackedUp[] },
): Promise<void> {
  if (outcome.kind !== 'attempted' || !hasBackup(service)) return;
  const dumped = outcome.attempt.databases.filter(({ kind }) => kind === 'dumped');
  if (dumped.length === 0) return;
  const databases = new Set(dumped.map(({ database }) => database));
  await pruneService(ctx, cluster, { service, databases, ...known });
}

async function takeTurn(
  session: BackupSession,
  engine: Engine,
  turn: BackupTurn,
  { ledger, waitMs }: { ledger: Backups; waitMs: number },
): Promise<ServiceOutcome> {
  const { ctx, cluster } = session;
  const work = async (): Promise<ServiceOutcome> => {
    const now = ctx.clock.now();
    // One that has come while others had their turn.
    const hold = turn.isScheduled
      ? holdFor(await readHolds(ctx.paths, now, ctx.log), turn.key, now)
      : undefined;
    if (hold !== undefined) return { kind: 'deferred', reason: describeHold(hold) };
    const about = { engine, nodeId: cluster.nodeId, paths: ctx.paths, now, log: ctx.log };
    const found = await findDatabaseContainer(about, turn.service);
    if ('missing' in found) return { kind: 'deferred', reason: found.missing };
    const earlier = ledger.value.services[turn.key];
    const outcome = await backUpService(session, turn, { container: found.container, earlier });
    if (outcome.kind !== 'attempted') return outcome;
    await ledger.update((document) => recordAttempt(document, outcome.attempt));
    await appendHistory(ctx.paths, toEvents(ctx, turn, outcome));
    return outcome;
  };
  try {
    return await withLock(ctx, serviceLock(turn.service), work, { waitMs });
  } catch (error) {
    if (error instanceof BusyError) return { kind: 'deferred', reason: error.message };
    throw error;
  }
}
