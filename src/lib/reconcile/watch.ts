// `reconcile --watch`, for development and hosts without systemd: one activation after another in the foreground, started by
// a new desired state, a wake or the tick. Under systemd a timer and a path unit do this.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { desiredKey } from '../cluster/keys.ts';
import { type NodeConfig, requireRole } from '../config/rules.ts';
import type { BaseContext, Context } from '../context.ts';
import { BusyError, describeError, ReeveError } from '../errors.ts';
import { newRunId } from '../ids.ts';
import type { Outcome } from '../outcome.ts';
import { type ReconcileOptions, runReconcile } from './run.ts';

export type WatchOptions = ReconcileOptions & {
  /** Called for each activation, so that each goes by the configuration as it is then. */
  loadContext(): Promise<Context>;
  /** Says between two activations that the node is alive: here no timer does. */
  beat(ctx: Context): Promise<unknown>;
};

/** Ends with the signal, once the step under way is settled; after one activation where LAUNCHPAD_ONCE says so. */
export async function watchReconcile(base: BaseContext, options: WatchOptions): Promise<Outcome> {
  const { loadContext, beat, ...reconcile } = options;
  const ctx = await loadContext();
  const cluster = requireRole(ctx.config, 'app', 'reconcile --watch');
  if (cluster.once) return await runReconcile(ctx, reconcile);
  const bell = createBell();
  const close = await watchNode(base, cluster, bell);
  try {
    base.log.info(`watching node ${cluster.nodeId}; a tick is every ${cluster.intervals.tickMs / 1000} s`);
    while (!base.signal.aborted) {
      bell.reset();
      await activate(base, options);
      await waitAlive(ctx, cluster, { bell, beat });
    }
    return { outcome: 'done', text: [] };
  } finally {
    await close();
  }
}

/** What is wrong now may be right at the next tick: only a bug of ours ends the watch. */
async function activate(
  base: BaseContext,
  { loadContext, beat: _, ...reconcile }: WatchOptions,
): Promise<void> {
  const { log, clock } = base;
  try {
    const ctx = { ...(await loadContext()), runId: newRunId(clock.now()) };
    const { outcome, text } = await runReconcile(ctx, reconcile);
    if (outcome === 'nothing-to-do') return;
    for (const line of text) log.info(line);
  } catch (error) {
    if (!(error instanceof ReeveError)) throw error;
    if (error instanceof BusyError) log.info(describeError(error));
    else log.error(describeError(error));
  }
}

/** Until the bell rings or a tick is over, with a sign of life in each liveness interval. */
async function waitAlive(
  ctx: Context,
  { intervals }: NodeConfig,
  { bell, beat }: { bell: Bell; beat: WatchOptions['beat'] },
): Promise<void> {
  const tickAt = ctx.clock.now().getTime() + intervals.tickMs;
  for (;;) {
    const leftMs = Math.min(tickAt - ctx.clock.now().getTime(), intervals.tickMs);
    await bell.wait(ctx, Math.min(leftMs, intervals.livenessMs));
    if (bell.rung() || ctx.signal.aborted || leftMs <= intervals.livenessMs) return;
    await beat(ctx).catch((error: unknown) => ctx.log.warning(describeError(error)));
  }
}

type Bell = {
  ring(): void;
  rung(): boolean;
  /** Forgets what has rung so far: what is about to be done sees to it. */
  reset(): void;
  /** Until it rings or has rung, the time is over or the signal aborts. */
  wait(base: Pick<BaseContext, 'clock' | 'signal'>, ms: number): Promise<void>;
};

function createBell(): Bell {
  let rung = new AbortController();
  return {
    ring: () => rung.abort(),
    rung: () => rung.signal.aborted,
    reset: () => {
      rung = new AbortController();
    },
    wait: async ({ clock, signal }, ms) => {
      const woken = AbortSignal.any([signal, rung.signal]);
      if (!woken.aborted) await clock.sleep(ms, woken);
    },
  };
}

/** Watches the node's desired state, where it is a file, and its wake. Answers with what ends that. */
async function watchNode(
  { paths, log }: BaseContext,
  cluster: NodeConfig,
  bell: Bell,
): Promise<() => Promise<void>> {
  await mkdir(paths.wakeDir, { recursive: true });
  const watched = [join(paths.wakeDir, 'reconcile')];
  if (cluster.store.startsWith('file:')) {
    watched.push(join(fileURLToPath(cluster.store), desiredKey(cluster.clusterId, cluster.nodeId)));
  }
  const { watch } = await import('chokidar');
  const watcher = watch(watched, { ignoreInitial: true });
  // Where a path is missing, what is beside it is told of as well, our own status among it.
  const ringFor = (path: string): void => (watched.includes(path) ? bell.ring() : undefined);
  watcher.on('add', ringFor).on('change', ringFor);
  // Then the tick alone has to do.
  watcher.on('error', (error) => log.warning(`cannot watch: ${describeError(error)}`));
  await new Promise<void>((resolve) => {
    watcher.once('ready', () => resolve());
  });
  return async () => await watcher.close();
}
