// Old commands go while the API is there: at its start, and twice in the time that they are kept.

import { sweepCommands } from '../commands/sweep.ts';
import { requireSection } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { describeError } from '../errors.ts';
import type { Turns } from '../turns.ts';

const shortestMs = 1_000;
/** What a timer can have. */
const longestMs = 24 * 60 * 60_000;

/** Resolves soon after the signal. Keeps no process from ending. */
export async function keepSwept(ctx: Context, turns: Turns, signal: AbortSignal): Promise<void> {
  const { jobRetentionMs } = requireSection(ctx.config, 'commands');
  const everyMs = Math.min(longestMs, Math.max(shortestMs, jobRetentionMs / 2));
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    try {
      const count = await sweepCommands(ctx, { retentionMs: jobRetentionMs, turns, signal, isFirst });
      if (count > 0) ctx.log.info(`forgot ${count} old commands`);
    } catch (error) {
      ctx.log.warning(`cannot sweep old commands: ${describeError(error)}`);
    }
    await ctx.clock.sleep(everyMs, signal);
  }
}
