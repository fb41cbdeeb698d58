// `job show ID`: all that the records of a job tell, in words. Read-only.
import type { Context } from '../../context.ts';
import type { Outcome } from '../../outcome.ts';
import { describeDetails } from './describe.ts';
import { requireJob } from './gather.ts';
import { renderJob } from './render.ts';

export async function showJob(ctx: Pick<Context, 'paths' | 'clock' | 'log'>, id: string): Promise<Outcome> {
  const job = describeDetails(await requireJob(ctx, id, 'show'));
  return { outcome: 'done', text: renderJob(job, ctx.clock.now()), data: { job } };
}
