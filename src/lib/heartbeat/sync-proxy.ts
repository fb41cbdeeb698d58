// With each heartbeat: the proxy is compared with its registry, and repaired, and what a reload has left behind comes to its end.
// What goes wrong is told; it fails no report.
import type { CommandsConfig } from '../config/config.ts';
import type { Context } from '../context.ts';
import { describeError, ReeveError } from '../errors.ts';
import type { Outcome } from '../outcome.ts';
import { syncProxy, tellChanges } from '../proxy/sync.ts';

/** A HAProxy that reloads may take seconds; the next heartbeat comes anyway. */
const lockMs = 2_000;

/** `deferred` where it could not be compared: the next heartbeat tries again. */
export async function keepProxy(ctx: Context, commands: CommandsConfig): Promise<Outcome> {
  try {
    const { repaired, forced } = await syncProxy(ctx, commands, { waitMs: lockMs });
    if (repaired.length === 0 && forced === 0) return { outcome: 'nothing-to-do', text: [] };
    // Each was told as it was done.
    const text = [`the proxy: ${tellChanges({ repaired, forced }).join('; ')}`];
    return { outcome: 'done', text, data: { proxy: { repaired, forced } } };
  } catch (error) {
    if (!(error instanceof ReeveError) || ctx.signal.aborted) throw error;
    ctx.log.warning(`the proxy is not compared with its registry: ${describeError(error)}`);
    return {
      outcome: 'deferred',
      text: ['the proxy is not compared with its registry: the next heartbeat tries again'],
      data: { proxy: { error: describeError(error) } },
    };
  }
}
