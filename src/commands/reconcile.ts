// `reeve reconcile`: one activation towards the desired state.
import type { Context } from '../lib/context.ts';
import { UsageError } from '../lib/errors.ts';
import { parseWait } from '../lib/lock/wait.ts';
import type { Outcome } from '../lib/outcome.ts';
import { planOnce, runReconcile } from '../lib/reconcile/run.ts';
import type { CommandInput } from './command.ts';
import { parseServiceKey } from './flags.ts';

export async function run({ base, options, loadContext }: CommandInput): Promise<Outcome> {
  const only = parseServiceKey(options['service']);
  const plan = { ...(only === undefined ? {} : { only }), allowRemoval: options['allowRemoval'] === true };
  if (options['dryRun'] === true) {
    if (options['watch'] === true) throw new UsageError('--dry-run and --watch exclude each other');
    const { renderPlan } = await import('../lib/reconcile/render.ts');
    const { facts, plan: planned } = await planOnce(await loadContext(), plan);
    return renderPlan(facts, planned);
  }
  const reconcile = { ...plan, waitMs: parseWait(options['wait']) };
  if (options['watch'] === true) {
    const { watchReconcile } = await import('../lib/reconcile/watch.ts');
    const { runHeartbeat } = await import('../lib/heartbeat/run.ts');
    const beat = (ctx: Context): Promise<Outcome> => runHeartbeat(ctx, { waitMs: 0 });
    return await watchReconcile(base, { ...reconcile, loadContext, beat });
  }
  return await runReconcile(await loadContext(), reconcile);
}
