// Retention of one service's backups, and of all of this node's: `backup prune`, and what a run of `backup` does for the
// databases that it has dumped. A dry run is the same but for the requests that change something.
import { serviceKey } from '../../cluster/wire.ts';
import { type NodeConfig, requireRole } from '../../config/rules.ts';
import type { Context } from '../../context.ts';
import { describeError } from '../../errors.ts';
import { withLock } from '../../lock/with-locks.ts';
import type { Outcome } from '../../outcome.ts';
import { appendHistory } from '../../state/history.ts';
import { type Inventory, readInventory } from '../inventory.ts';
import { openBackupStore } from '../place.ts';
import { readRecorded } from '../recorded.ts';
import { type BackedUp, findOverlap, readBackedUp } from '../services.ts';
import type { BackupsDocument } from '../state.ts';
import { applyRemovals, type RemovalResult } from './apply.ts';
import { planRemovals, type Removal } from './plan.ts';
import { type DatabaseRetention, findClockFault, findPolicyFault, planRetention } from './policy.ts';
import { renderPrune, toPruneEvents } from './render.ts';

export type ServicePrune = {
  key: string;
  databases: readonly DatabaseRetention[];
  /** What was done, or would be. */
  results: readonly RemovalResult[];
  /** Keys below its prefix that no backup has. */
  unrecognised: readonly string[];
  /** Why nothing could be removed at all. */
  error?: string;
};

export type PruneRequest = { only?: string; isDryRun: boolean; waitMs: number };

/** Throws BusyError while a backup is under way: its set is not to be judged. */
export async function pruneBackups(ctx: Context, request: PruneRequest): Promise<Outcome> {
  const cluster = requireRole(ctx.config, 'app', 'backup prune');
  const work = async (): Promise<Outcome> => await pruneAll(ctx, cluster, request);
  return request.isDryRun ? await work() : await withLock(ctx, 'backup', work, { waitMs: request.waitMs });
}

async function pruneAll(ctx: Context, cluster: NodeConfig, request: PruneRequest): Promise<Outcome> {
  const { only, isDryRun } = request;
  const all = await readBackedUp(ctx, cluster);
  const chosen = only === undefined ? all : await readBackedUp(ctx, cluster, only);
  const recorded = await readRecorded(ctx);
  const prunes: ServicePrune[] = [];
  for (const service of chosen) {
    if (ctx.signal.aborted) break;
    const overlap = findOverlap(service, all);
    prunes.push(await prune(ctx, cluster, { service, recorded, isDryRun, overlap }));
  }
  return renderPrune(prunes, { isDryRun });
}

/**
 * After a run has dumped these databases of a service: others are left alone. `all`: the services of this node with backups. Assumes the lock `backup`. Throws nothing: what it
 * could not do is told in the log and is no failure of the backup.
 */
export async function pruneService(
  ctx: Context,
  cluster: NodeConfig,
  { all, ...about }: Pick<PruneWork, 'service' | 'databases' | 'recorded'> & { all: readonly BackedUp[] },
): Promise<void> {
  const overlap = findOverlap(about.service, all);
  const pruned = await prune(ctx, cluster, { ...about, isDryRun: false, overlap });
  const errors = [pruned.error, ...pruned.results.map(({ error }) => error)];
  for (const error of errors)
    if (error !== undefined) ctx.log.warning(`old backups of ${pruned.key} stay: ${error}`);
  const removed = pruned.results.filter(({ kind, error }) => kind === 'dump' && error === undefined);
  if (removed.length > 0) ctx.log.info(`removed ${removed.length} old dumps of ${pruned.key}`);
}

type PruneWork = {
  service: BackedUp;
  recorded: BackupsDocument;
  isDryRun: boolean;
  /** Only these; default: all. */
  databases?: ReadonlySet<string>;
  /** Another service whose backups are among this one's. */
  overlap: string | undefined;
};

async function prune(ctx: Context, cluster: NodeConfig, work: PruneWork): Promise<ServicePrune> {
  const { service, isDryRun } = work;
  const key = serviceKey(service);
  const nothing = { key, databases: [], results: [], unrecognised: [] };
  try {
    const fault = findFault(work);
    if (fault !== undefined) return { ...nothing, error: fault };
    const { store, prefix } = await openBackupStore({ cluster, signal: ctx.signal }, service.backup);
    const inventory = await readInventory(store, prefix);
    const { unrecognised } = inventory;
    warnOfUnrecognised(ctx, key, unrecognised);
    const planned = planService(inventory, work, { prefix, now: ctx.clock.now() });
    if ('error' in planned) return { ...nothing, unrecognised, error: planned.error };
    const { databases, removals } = planned;
    if (isDryRun) return { key, databases, results: foretell(removals), unrecognised };
    const results = await applyRemovals(store, removals, ctx.signal);
    await appendHistory(ctx.paths, toPruneEvents(ctx, service, results));
    return { key, databases, results, unrecognised };
  } catch (error) {
    return { ...nothing, error: describeError(error) };
  }
}

function findFault({ service, overlap }: PruneWork): string | undefined {
  if (overlap !== undefined)
    return `its backups are among those of ${overlap}: give each a prefix of its own`;
  const fault = findPolicyFault(service.backup);
  return fault === undefined ? undefined : `its policy cannot be followed: ${fault}`;
}

function planService(
  inventory: Inventory,
  { service, recorded, databases: only }: PruneWork,
  { prefix, now }: { prefix: string; now: Date },
): { databases: DatabaseRetention[]; removals: Removal[] } | { error: string } {
  const { dumps, sets, unrecognised } = inventory;
  if (unrecognised.length > 0 && dumps.length + sets.length === 0) {
    return {
      error: `none of the ${unrecognised.length} keys below its prefix is a backup's: is that its prefix?`,
    };
  }
  const fault = findClockFault(inventory, now);
  if (fault !== undefined) return { error: `ages cannot be told: ${fault}` };
  const known = Object.entries(recorded.services[serviceKey(service)]?.databases ?? {});
  const failing = new Set(known.filter(([, { lastError }]) => lastError !== null).map(([name]) => name));
  const databases = planRetention(inventory, { policy: service.backup, failing, now }).filter(
    ({ database }) => only === undefined || only.has(database),
  );
  return { databases, removals: planRemovals(inventory, databases, { prefix, now }) };
}

/** What comes of it where every request is granted. */
function foretell(removals: readonly Removal[]): RemovalResult[] {
  return removals.flatMap(({ stamp, dumps, files, filesReason }) => [
    ...dumps.map((decision): RemovalResult => ({ kind: 'dump', stamp, decision })),
    ...(files.length === 0 ? [] : [{ kind: 'set' as const, stamp, reason: filesReason }]),
  ]);
}

function warnOfUnrecognised({ log }: Context, key: string, keys: readonly string[]): void {
  if (keys.length === 0) return;
  const shown = keys
    .slice(0, 3)
    .map((one) => JSON.stringify(one))
    .join(', ');
  log.warning(`${keys.length} unrecognised keys below the prefix of ${key} are left alone`, { keys: shown });
}
