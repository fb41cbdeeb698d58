// Waits for a slot without asking anybody: a job that ends leaves the directory of open jobs.
import type { Context } from '../context.ts';
import { openJobsDir } from '../jobs/records.ts';
import { ensureDirectory } from '../state/directory.ts';
import { type DirectoryWatch, watchDirectory } from '../state/watch-directory.ts';

export type SlotWatch = {
  /** Until a job has come or gone since the last wait, at most so long. The first one only begins to watch. */
  wait(maxMs: number): Promise<void>;
  close(): void;
};

export function openSlotWatch({ paths, clock, signal }: Context): SlotWatch {
  let watcher: DirectoryWatch | undefined;
  let hasChanged = false;
  let wake: (() => void) | undefined;
  const begin = async (): Promise<void> => {
    await ensureDirectory(openJobsDir(paths));
    watcher = watchDirectory(openJobsDir(paths), () => {
      hasChanged = true;
      wake?.();
    });
  };
  return {
    wait: async (maxMs) => {
      if (watcher === undefined) return await begin();
      if (!hasChanged) {
        const woken = new AbortController();
        wake = () => woken.abort();
        await clock.sleep(maxMs, AbortSignal.any([signal, woken.signal]));
        wake = undefined;
      }
      hasChanged = false;
    },
    close: () => watcher?.close(),
  };
}
