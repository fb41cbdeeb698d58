// One pull of this node's actions and one push of its results, under the lock. Neither keeps the other from its work; the node asks
// and sends, and nobody ever connects to it.
import { type Refusal, readRefusals, refusalLimits, sweepRefusals } from '../actions/refusals.ts';
import { findNews, readStrays, type Strays, summarizeStrays, writeStrays } from '../actions/strays.ts';
import type { ActionsConfig } from '../config/config.ts';
import { requireActionsNode } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { ConfigError, describeError, ReeveError, StepError, UnavailableError } from '../errors.ts';
import { withLock } from '../lock/with-locks.ts';
import type { Outcome } from '../outcome.ts';
import { writeWake } from '../publish/wake.ts';
import { appendHistory } from '../state/history.ts';
import { recordRun } from '../state/record-run.ts';
import { type Applied, applyPull } from './apply.ts';
import type { LeftEntry } from './facts.ts';
import { countWaiting, gatherLeft, gatherMirror } from './gather.ts';
import { updateMirror } from './mirror.ts';
import { planPull } from './plan.ts';
import { pushResults } from './push.ts';

export async function runRsyncPull(ctx: Context, { waitMs }: { waitMs: number }): Promise<Outcome> {
  const actions = requireActionsNode(ctx.config);
  const work = async (): Promise<Outcome> => {
    const pulled = await pullActions(ctx, actions).catch((error: unknown) => pulledNothing(error));
    // After the pull: what it refuses leaves with this run.
    const pushed = await pushResults(ctx, actions).catch((error: unknown) => ({ sent: [], errors: [error] }));
    throwErrors([...pulled.errors, ...pushed.errors]);
    return renderOutcome(pulled, pushed.sent);
  };
  // Results leave even where nothing more can be written here.
  const record = () => recordRun(ctx, 'rsync-pull', work, { goesOnUnrecorded: true });
  return await withLock(ctx, 'rsync-pull', record, { waitMs });
}

/** `stray`: how many entries at the source are left alone, told before or now; `postponed`: how many wait there for room here. */
type Pulled = Omit<Applied, 'errors'> & {
  news: readonly LeftEntry[];
  stray: number;
  postponed: number;
  errors: readonly unknown[];
};

async function pullActions(ctx: Context, actions: ActionsConfig): Promise<Pulled> {
  const { seen, listed, left, errors } = await updateMirror(ctx, actions);
  const { entries, ...mirror } = await gatherMirror(ctx);
  const refusals = await readRefusals(ctx);
  const waiting = await countWaiting(ctx, refusals);
  const plan = planPull({ entries, left: await gatherLeft(ctx, left), seen, listed, waiting });
  const isWhole = listed !== undefined && errors.length + mirror.errors.length === 0;
  const swept = await sweep(ctx, refusals, { keys: plan.keys, isWhole });
  const applied = await applyPull(ctx, actions, plan.steps);
  if (applied.handedOver.length > 0) await wakeDeploys(ctx);
  if (plan.postponed > 0) ctx.log.warning(describePostponed(plan.postponed));
  // What is there no longer is known only from a whole list.
  const told = listed === undefined ? { news: [], errors: [] } : await tellStrays(ctx, plan.strays);
  return {
    ...{ ...applied, news: told.news, stray: plan.strays.length, postponed: plan.postponed },
    errors: [...errors, ...mirror.errors, ...swept, ...applied.errors, ...told.errors],
  };
}

function pulledNothing(error: unknown): Pulled {
  return { handedOver: [], refused: [], news: [], stray: 0, postponed: 0, errors: [error] };
}

/** Before anything is refused, so that what is refused without end stays within its bounds. */
async function sweep(
  ctx: Context,
  refusals: readonly Refusal[],
  source: { keys: ReadonlySet<string>; isWhole: boolean },
): Promise<unknown[]> {
  return await sweepRefusals(ctx, refusals, { ...source, ...refusalLimits }).then(
    () => [],
    (error: unknown) => [error],
  );
}

function describePostponed(count: number): string {
  return `${count} more at the source wait until there is room here`;
}

/** Best effort: its timer comes anyway. */
async function wakeDeploys({ paths, log }: Context): Promise<void> {
  await writeWake(paths, 'deploy-action').catch((error: unknown) => {
    log.warning(`deploy-action is not woken: ${describeError(error)}`);
  });
}

type Told = { news: readonly LeftEntry[]; errors: readonly unknown[] };

/** They are told even where that cannot be written down: then they are told again. */
async function tellStrays(ctx: Context, strays: readonly LeftEntry[]): Promise<Told> {
  const errors: unknown[] = [];
  const collect = (error: unknown): void => void errors.push(error);
  const told = await readStrays(ctx, { repair: true }).catch((error: unknown): Strays => {
    collect(error);
    return { count: 0, entries: [] };
  });
  const found = summarizeStrays(strays);
  const news = findNews(found, told);
  const at = ctx.clock.now().toISOString();
  for (const { name, reason } of news) {
    ctx.log.warning(`${JSON.stringify(name)} at the source is left alone: ${reason}`);
  }
  if (found.count > found.entries.length && found.count !== told.count) {
    ctx.log.warning(`${found.count} entries at the source are left alone`);
  }
  await appendHistory(
    ctx.paths,
    news.map(({ name, reason }) => ({
      ...{ at, run: ctx.runId, concern: 'rsync-pull', action: `leave ${JSON.stringify(name)}` },
      ...{ reason, outcome: 'refused' as const },
    })),
  ).catch(collect);
  await writeStrays(ctx, found, told).catch(collect);
  return { news, errors };
}

/** A bug stays one, but for the results that have left before. */
function throwErrors(errors: readonly unknown[]): void {
  if (errors.length === 0) return;
  const bug = errors.find((error) => !(error instanceof ReeveError));
  if (errors.length === 1 || bug !== undefined) throw bug ?? errors[0];
  const message = errors.map(describeError).join('; ');
  for (const Same of [UnavailableError, ConfigError]) {
    if (errors.every((error) => error instanceof Same)) throw new Same(message);
  }
  throw new StepError(message, { code: 'pull' });
}

function renderOutcome(
  { handedOver, refused, news, stray, postponed }: Pulled,
  sent: readonly string[],
): Outcome {
  const left = news.map(({ name, reason }) => ({ name, reason }));
  const isIdle = [handedOver, refused, left, sent].every(({ length }) => length === 0);
  const isWhole = refused.length === 0 && left.length === 0;
  return {
    outcome: isIdle ? 'nothing-to-do' : isWhole ? 'done' : 'partial',
    text: [
      ...handedOver.map((name) => `new: ${name}`),
      ...refused.map((name) => `refused: ${name}`),
      ...left.map(({ name, reason }) => `left at the source: ${JSON.stringify(name)}: ${reason}`),
      ...sent.map((name) => `sent: ${name}`),
      ...(isIdle ? ['nothing new, and nothing to send'] : []),
      ...(postponed > 0 ? [describePostponed(postponed)] : []),
      ...(stray > left.length ? [`entries at the source that are no actions: ${stray}`] : []),
    ],
    data: { handedOver, refused, left, sent, stray, postponed },
  };
}
