// The steps of the pass at the start: one after another what is done on this node, then what waits for the server, side by side. What
// goes wrong with one of them is told, here and to the server, and the others go on.
import { mapBounded } from '../bounded.ts';
import type { Context } from '../context.ts';
import { BusyError, describeError, StepError } from '../errors.ts';
import {
  closeJob,
  type JobRecords,
  openPlace,
  readOpenJob,
  restoreClaim,
  writeCompletion,
} from '../jobs/book.ts';
import { deliverCompletion } from '../jobs/deliver.ts';
import { readJobId } from '../jobs/job-id.ts';
import type { JobClaim, JobCompletion } from '../jobs/records.ts';
import { openInSlot } from '../jobs/slots.ts';
import { jobLock } from '../lock/names.ts';
import { withLock } from '../lock/with-locks.ts';
import { buildFailure, buildReplayCompletion } from '../ploy/completion.ts';
import type { CompletionBody } from '../ploy/wire.ts';
import type { JobContainer } from './facts.ts';
import type { ClaimSession } from './session.ts';
import { type ClaimStep, waitsForServer } from './steps.ts';

/** As many ends are on their way to the server at once: each may wait for 40 s. */
const deliveriesAtOnce = 8;

/** `isAway`: the server has not taken an end; whether it is well again is asked once for each of the others. */
type Pass = ClaimSession & { server: { isAway: boolean } };

/** The troubles, one sentence each. */
export async function applyClaimSteps(session: ClaimSession, steps: readonly ClaimStep[]): Promise<string[]> {
  const pass: Pass = { ...session, server: { isAway: false } };
  const troubles: string[] = [];
  const apply = async (step: ClaimStep): Promise<void> => {
    const trouble = session.ctx.signal.aborted ? undefined : await tryStep(pass, step);
    if (trouble !== undefined) troubles.push(trouble);
  };
  for (const step of steps) if (!waitsForServer(step)) await apply(step);
  await mapBounded(steps.filter(waitsForServer), deliveriesAtOnce, apply);
  return troubles;
}

/** What went wrong. A job that another process has is none of ours. */
async function tryStep(pass: Pass, step: ClaimStep): Promise<string | undefined> {
  try {
    await applyStep(pass, step);
    return undefined;
  } catch (error) {
    // A stop ends the wait for a lock: the next pass does it.
    if (error instanceof BusyError || pass.ctx.signal.aborted) return undefined;
    const verb = step.kind === 'trouble' ? 'look at' : step.kind;
    const trouble = `cannot ${verb} ${nameOf(step)}: ${describeError(error)}`;
    pass.ctx.log.error(trouble);
    await tellServer(pass, step, trouble);
    return trouble;
  }
}

async function applyStep(session: Pass, step: ClaimStep): Promise<void> {
  const { ctx, runners, engine } = session;
  if (step.kind !== 'trouble') ctx.log.info(`${step.kind} ${nameOf(step)}`, { why: step.reason });
  switch (step.kind) {
    case 'complete':
      return await complete(session, step.container);
    case 'adopt':
      await openInSlot(ctx, toAdopted(ctx, step.container));
      return await runners.start(step.container.key);
    case 'restore':
      return await underJob(ctx, step.key, async (job) => {
        if (job.claim === undefined) await restoreClaim(job, toAdopted(ctx, step.container));
      });
    case 'give-up':
      return await underJob(ctx, step.key, (job) => giveUp(session, job));
    case 'deliver':
      return await underJob(ctx, step.key, (job) => deliver(session, job));
    case 'start':
      return await runners.start(step.key);
    case 'remove':
      return await engine.removeContainer(step.container.id, { force: true, anonymousVolumes: true });
    case 'trouble':
      throw new Error(step.reason);
  }
}

/** Under the same lock as the job's own process, so that nothing is delivered twice at once. It may have ended since the look. */
async function underJob(ctx: Context, key: string, work: (job: JobRecords) => Promise<void>): Promise<void> {
  await withLock(ctx, jobLock(key), async () => {
    const job = await readOpenJob(ctx, key);
    if (job !== undefined) await work(job);
  });
}

function toAdopted({ clock }: Pick<Context, 'clock'>, container: JobContainer): JobClaim {
  const { runId, jobId, id: containerId } = container;
  return { source: 'adopted', claimedAt: clock.now().toISOString(), runId, jobId, containerId };
}

/** Its end is on disk before it is sent: if the server does not take it now, the next pass sends it. */
async function complete(session: Pass, container: JobContainer): Promise<void> {
  const { ctx } = session;
  const { id: containerId, key, end } = container;
  if (end === undefined) return;
  await withLock(ctx, jobLock(key), async () => {
    if ((await openInSlot(ctx, toAdopted(ctx, container))) !== 'opened') return;
    const body = buildReplayCompletion({
      containerId,
      exitCode: end.exitCode,
      startedAt: end.startedAt?.toISOString(),
      finishedAt: end.finishedAt?.toISOString(),
    });
    await writeCompletion(openPlace(ctx, key), decide(ctx, body));
    const job = await readOpenJob(ctx, key);
    if (job !== undefined) await deliver(session, job);
  });
}

function decide({ clock }: Pick<Context, 'clock'>, body: CompletionBody): JobCompletion {
  return { body, decidedAt: clock.now().toISOString(), attempts: 0 };
}

/** Only its id is left. An end that was decided before stays. */
async function giveUp(session: Pass, job: JobRecords): Promise<void> {
  const { ctx } = session;
  // Restored by somebody else: the next look starts it.
  if (job.claim !== undefined) return;
  const jobId = await readJobId(job);
  if (jobId === undefined) throw new StepError('its claim is lost, and its id is not known');
  const claimedAt = ctx.clock.now().toISOString();
  const claim: JobClaim = { source: 'adopted', claimedAt, runId: unknownRun, jobId };
  await restoreClaim(job, claim);
  const error = 'cannot go on with the job: its records on the node are damaged, and it has no container';
  const completion = job.completion ?? decide(ctx, buildFailure({ error, durationMs: 0 }));
  if (job.completion === undefined) await writeCompletion(job, completion);
  await deliver(session, { ...job, claim, completion });
}

const unknownRun = 'unknown';

async function deliver({ ctx, controlPlane, engine, server }: Pass, job: JobRecords): Promise<void> {
  const { claim, progress, completion } = job;
  if (claim === undefined || completion === undefined) return;
  const about = { runId: claim.runId, jobId: claim.jobId, mode: 'replay', place: job, completion } as const;
  const { delivery } = await deliverCompletion(ctx, controlPlane, {
    ...about,
    ...(server.isAway ? { maxAttempts: 1 } : {}),
  });
  if (delivery.kind === 'undelivered') {
    server.isAway = true;
    ctx.log.warning(`the server does not take the end of job ${claim.jobId}: ${delivery.reason}`);
    return;
  }
  await closeJob(ctx, job.key);
  const containerId = progress?.containerId ?? claim.containerId;
  if (containerId === undefined) return;
  try {
    await engine.removeContainer(containerId, { force: true, anonymousVolumes: true });
  } catch (error) {
    // The end is told: the next pass removes what is left over.
    ctx.log.warning(`cannot remove the container: ${describeError(error)}`, { job: claim.jobId });
  }
}

async function tellServer(
  { ctx, controlPlane }: ClaimSession,
  step: ClaimStep,
  message: string,
): Promise<void> {
  if (!('container' in step) || step.container === undefined) return;
  const { runId, jobId, id } = step.container;
  const time = ctx.clock.now().toISOString();
  const meta = { component: 'startup_reconcile', container_id: id };
  await controlPlane
    .sendEvents(runId, [{ job_id: jobId, time, level: 'error', message, meta }])
    .catch((error: unknown) => ctx.log.debug(`cannot tell the server: ${describeError(error)}`));
}

function nameOf(step: ClaimStep): string {
  if (step.kind === 'trouble') return step.about;
  return 'key' in step ? `job ${step.key}` : `container ${step.container.id.slice(0, 12)}`;
}
