// `deploy-action --watch`, for development and hosts without systemd: one run after another in the foreground, started by a file in
// the inbox or by the time. Under systemd a path unit and a timer do this.
import { actionPlaces } from '../actions/places.ts';
import type { BaseContext, Context } from '../context.ts';
import { BusyError, describeError, ReeveError } from '../errors.ts';
import { newRunId } from '../ids.ts';
import type { Outcome } from '../outcome.ts';
import { ensureDirectory } from '../state/directory.ts';
import { runDeployAction } from './run.ts';

export type WatchOptions = {
  waitMs: number;
  /** Called for each run, so that each goes by the configuration as it is then. */
  loadContext(): Promise<Context>;
};

/** What is not heard of waits no longer. */
const tickMs = 60_000;

/** Ends with the signal, once the deploy under way is settled. */
export async function watchDeployAction(base: BaseContext, options: WatchOptions): Promise<Outcome> {
  const { inbox } = actionPlaces(base.paths);
  // What is wrong with the configuration is told at once.
  await options.loadContext();
  await ensureDirectory(inbox);
  const { watch } = await import('chokidar');
  const watcher = watch(inbox, { ignoreInitial: true, depth: 0 });
  let news = new AbortController();
  watcher.on('all', () => news.abort());
  // Then the time alone has to do.
  watcher.on('error', (error) => base.log.warning(`cannot watch: ${describeError(error)}`));
  await new Promise<void>((resolve) => {
    watcher.once('ready', () => resolve());
  });
  try {
    base.log.info(`watching ${inbox}`);
    while (!base.signal.aborted) {
      news = new AbortController();
      const woken = AbortSignal.any([base.signal, news.signal]);
      await activate(base, options);
      if (!woken.aborted) await base.clock.sleep(tickMs, woken);
    }
    return { outcome: 'done', text: [] };
  } finally {
    await watcher.close();
  }
}

/** What is wrong now may be right the next time: only a bug of ours ends the watch. */
async function activate(base: BaseContext, { loadContext, waitMs }: WatchOptions): Promise<void> {
  const { log, clock } = base;
  try {
    await runDeployAction({ ...(await loadContext()), runId: newRunId(clock.now()) }, { waitMs });
  } catch (error) {
    if (!(error instanceof ReeveError)) throw error;
    if (error instanceof BusyError) log.info(describeError(error));
    else log.error(describeError(error));
  }
}
