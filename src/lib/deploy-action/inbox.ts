// What the inbox holds, one thing after another: it is looked at again after each deploy, until nothing is due. Every entry leaves it,
// whatever it was, and every result leaves for the outbox. Assumes the lock.
import { forgetArrival, sweepArrivals } from '../actions/arrivals.ts';
import { openQuarantine } from '../actions/leave.ts';
import type { ActionsConfig } from '../config/config.ts';
import type { Context } from '../context.ts';
import { actionIdOf } from '../deploy-runner/key.ts';
import { describeError, ReeveError } from '../errors.ts';
import type { Outcome } from '../outcome.ts';
import { type ActionsWakeable, writeWake } from '../publish/wake.ts';
import { appendHistory } from '../state/history.ts';
import { applyStep } from './apply.ts';
import { gatherFacts } from './gather.ts';
import { planDeploys } from './plan.ts';
import { type Result, renderRun, toEvent } from './render.ts';
import { type Session, windowMs } from './session.ts';
import type { PlannedStep, Step } from './steps.ts';

export async function performInbox(
  ctx: Context,
  actions: ActionsConfig,
  tell: Session['tell'],
): Promise<Outcome> {
  const quarantine = await openQuarantine(ctx);
  await sweepArrivals(ctx);
  return renderRun(await performAll({ ctx, actions, quarantine, tell }));
}

async function performAll(session: Session): Promise<Result[]> {
  const { ctx, actions } = session;
  const endsAtMs = performance.now() + windowMs;
  const results: Result[] = [];
  // What could not be done is not tried again by this run: else it would never end.
  const tried = new Set<string>();
  const waiting = new Set<string>();
  for (;;) {
    const plan = planDeploys(await gatherFacts(ctx, actions));
    const open = plan.filter((step) => !tried.has(identify(step)));
    const isOver = ctx.signal.aborted || performance.now() > endsAtMs;
    const steps = takeDue(open, isOver);
    for (const step of steps) tried.add(identify(step));
    results.push(...(await performSteps(session, steps, tried)));
    if (steps.length > 0) continue;
    if (open.length === 0 || isOver) return await endRun(session, open, results);
    await waitForHold(session, open, waiting);
  }
}

/** What is left to do is the next run's. */
async function endRun({ ctx }: Session, open: readonly PlannedStep[], results: Result[]): Promise<Result[]> {
  if (open.length > 0 && !ctx.signal.aborted) await wake(ctx, 'deploy-action');
  return results;
}

/** How soon the end of a hold is seen. */
const lookMs = 2_000;

/** Each is told once. */
async function waitForHold(
  session: Session,
  steps: readonly PlannedStep[],
  told: Set<string>,
): Promise<void> {
  const { ctx } = session;
  for (const step of steps) {
    if (told.has(identify(step))) continue;
    told.add(identify(step));
    if (step.kind === 'wait') ctx.log.info(`${step.actionId} waits: ${step.reason}`);
    await session.tell('waiting for the end of the hold', windowMs);
  }
  await ctx.clock.sleep(lookMs, ctx.signal);
}

async function performSteps(session: Session, steps: readonly Step[], tried: Set<string>): Promise<Result[]> {
  const results: Result[] = [];
  for (const step of steps) {
    const result = await perform(session, step);
    results.push(result);
    // The same approval may be handed over once more.
    if (step.kind === 'forget' && result.error === undefined) tried.delete(identify(step));
    if ('name' in step && result.error === undefined) await forgetArrival(session.ctx, step.key);
    if (withResult.has(step.kind)) await wake(session.ctx, 'rsync-pull');
  }
  return results;
}

const withResult: ReadonlySet<Step['kind']> = new Set(['settle', 'report', 'refuse', 'deploy']);

/** Each result leaves at once, whatever is still to be done. Best effort: there are timers, too. */
async function wake({ paths, log }: Context, concern: ActionsWakeable): Promise<void> {
  await writeWake(paths, concern).catch((error: unknown) => {
    log.warning(`${concern} is not woken: ${describeError(error)}`);
  });
}

/** All that is quick, and one deploy unless the run is over: after it the world is another. */
function takeDue(steps: readonly PlannedStep[], isOver: boolean): Step[] {
  const first = isOver ? undefined : steps.find(({ kind }) => kind === 'deploy');
  const due = (step: PlannedStep): step is Step =>
    step.kind === 'deploy' ? step === first : step.kind !== 'wait';
  return steps.filter(due);
}

/** The same thing at every look. */
function identify(step: PlannedStep): string {
  if (step.kind !== 'set-aside') return `${step.kind} ${step.key}`;
  return step.names.map(({ path }) => path.toString('latin1')).join('\0');
}

async function perform(session: Session, step: Step): Promise<Result> {
  const { ctx } = session;
  const { log } = ctx;
  const result = await applyStep(session, step).catch((error: unknown): Result => {
    if (!(error instanceof ReeveError)) throw error;
    return { line: describeStep(step), error: describeError(error) };
  });
  tellResult(session, result);
  const about = { at: ctx.clock.now().toISOString(), run: ctx.runId, reason: step.reason };
  const event = toEvent(result, about);
  if (event === undefined) return result;
  // It is in its marker and its result as well.
  await appendHistory(ctx.paths, [event]).catch((error: unknown) => log.warning(describeError(error)));
  return result;
}

function tellResult({ ctx: { log } }: Session, { line, end, error }: Result): void {
  if (error !== undefined) log.error(`${line}: ${error}`);
  else if (end !== undefined && end.outcome !== 'succeeded') log.warning(line);
  else if (line !== '') log.info(line);
}

const verbs: Readonly<Partial<Record<Step['kind'], string>>> = { leave: 'tell the end of' };

function describeStep(step: Step): string {
  if ('actionId' in step) return `${step.actionId}: cannot ${verbs[step.kind] ?? step.kind} it`;
  if (step.kind === 'set-aside') return 'cannot empty the inbox';
  return `${actionIdOf(step.key)}: cannot ${step.kind} it`;
}
