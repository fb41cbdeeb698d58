// `job list`: the open jobs, then those that have ended. Read-only.
import type { Context } from '../../context.ts';
import type { Outcome } from '../../outcome.ts';
import { foldLines } from '../../report/table.ts';
import { describeJob } from './describe.ts';
import { readJobs } from './gather.ts';
import { renderJobs } from './render.ts';

const dayMs = 24 * 60 * 60_000;

/** `partial` (exit 1) where the records of one cannot be read. */
export async function listJobs(
  ctx: Pick<Context, 'paths' | 'clock' | 'log'>,
  { all }: { all: boolean },
): Promise<Outcome> {
  const now = ctx.clock.now();
  const { jobs, unreadable } = await readJobs(ctx, { endedSinceMs: all ? 0 : now.getTime() - dayMs });
  const summaries = jobs.map(describeJob);
  return {
    outcome: unreadable.length === 0 ? 'done' : 'partial',
    text: [
      ...(unreadable.length > 0 && jobs.length === 0 ? [] : renderJobs(summaries, now)),
      ...unreadable.map(({ key, message }) => `job ${key}: ${foldLines(message)}`),
    ],
    data: { jobs: summaries, unreadable },
  };
}
