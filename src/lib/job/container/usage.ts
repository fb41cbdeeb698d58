// What a job's container uses, asked while it runs: of one that has ended, engines have nothing to tell.
import type { ContainerUsage } from '../../docker/types.ts';
import { describeError } from '../../errors.ts';
import type { JobSession } from '../session.ts';

const soonestMs = 500;
const latestMs = 10_000;

/** A job that is over at once is asked nothing, and of a longer one at most an eighth of its time goes unseen. Pure. */
export function planSampleMs(ranMs: number): number {
  return Math.min(Math.max(ranMs / 8, soonestMs), latestMs);
}

/** The time of the CPU and the peak of the memory only grow, whatever an engine says of a container that is about to end. */
export function mergeUsage(seen: ContainerUsage | undefined, sample: ContainerUsage): ContainerUsage {
  return {
    cpuNs: Math.max(seen?.cpuNs ?? 0, sample.cpuNs),
    memoryBytes: Math.max(seen?.memoryBytes ?? 0, sample.memoryBytes),
  };
}

/** Into the progress, until `over`. A sample that is missing changes nothing. */
export async function watchUsage(session: JobSession, over: AbortSignal): Promise<void> {
  const { clock, log } = session.ctx;
  const startedAtMs = clock.now().getTime();
  for (;;) {
    await clock.sleep(planSampleMs(clock.now().getTime() - startedAtMs), over);
    if (over.aborted) return;
    try {
      const sample = await session.engine.fetchUsage(session.containerId, over);
      if (sample !== undefined) session.change({ usage: mergeUsage(session.progress.usage, sample) });
    } catch (error) {
      log.debug(describeError(error));
    }
  }
}
