// `reeve deploy-action`: performs what the inbox holds under one lock, so that two never meet. Most looks find nothing, and load no more
// than that takes.
import { listOpenKeys } from '../actions/markers.ts';
import { listEntries } from '../actions/open.ts';
import { actionPlaces } from '../actions/places.ts';
import { requireActionsNode } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { withLock } from '../lock/with-locks.ts';
import type { Outcome } from '../outcome.ts';
import { describeIdle } from '../report/idle.ts';
import { type RunTeller, recordRun } from '../state/record-run.ts';
import type { RunStep } from '../state/run-record.ts';

/** For a look and what is quick. */
const quickMs = 120_000;

/** Throws BusyError while another run is under way (D37). */
export async function runDeployAction(ctx: Context, { waitMs }: { waitMs: number }): Promise<Outcome> {
  const actions = requireActionsNode(ctx.config);
  const work = async (run: RunTeller): Promise<Outcome> => {
    if (!(await hasWork(ctx)))
      return { outcome: 'nothing-to-do', text: describeIdle(), data: { actions: [] } };
    const { clearOrphans } = await import('../actions/orphans.ts');
    await clearOrphans(ctx);
    const { performInbox } = await import('./inbox.ts');
    const done = await performInbox(ctx, actions, (doing, forMs) => run.tell(stepAt(ctx, doing, forMs)));
    return done.outcome === 'nothing-to-do' ? { ...done, text: describeIdle() } : done;
  };
  const step = stepAt(ctx, 'looking into the inbox', quickMs);
  const record = (): Promise<Outcome> => recordRun(ctx, 'deploy-action', work, { step });
  return await withLock(ctx, 'deploy-action', record, { waitMs });
}

async function hasWork(ctx: Context): Promise<boolean> {
  const { names } = await listEntries(actionPlaces(ctx.paths).inbox, 1);
  return names.length > 0 || (await listOpenKeys(ctx)).length > 0;
}

function stepAt({ clock }: Context, name: string, forMs: number): RunStep {
  const now = clock.now();
  return { name, startedAt: now.toISOString(), deadlineAt: new Date(now.getTime() + forMs).toISOString() };
}
