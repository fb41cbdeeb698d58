// The end of a job on its way to the server. Sending it twice is harmless, losing it is not: it is on disk before it is sent,
// sent until an answer has settled it, and what came of it is written down afterwards.
import type { BaseContext } from '../context.ts';
import { type ControlPlane, ControlPlaneError } from '../control-plane/control-plane.ts';
import { describeError } from '../errors.ts';
import { completionBackoff, planBackoffMs } from '../http/retry.ts';
import type { CompletionBody } from '../ploy/wire.ts';
import { type JobPlace, writeCompletion } from './book.ts';
import type { JobCompletion } from './records.ts';

type DeliverContext = Pick<BaseContext, 'paths' | 'clock' | 'log' | 'signal'>;

/** `live`: by whoever has just seen the job end. `replay`: later, when the server may have had it already. */
export type DeliveryMode = 'live' | 'replay';

type Settled = NonNullable<JobCompletion['settled']>;

export type Delivery =
  | { kind: 'settled'; attempts: number; how: Settled['how']; answer?: string }
  /** To be sent again later. */
  | { kind: 'undelivered'; attempts: number; reason: string };

export type CompletionAbout = { runId: string; jobId: string; mode: DeliveryMode };

const maxAttempts = 4;
const terminalStatuses = ['success', 'fail', 'error', 'cancelled'];

/** Sends it unless it is settled already, and records what came of it in `completion.json`. Assumes the job's lock. */
export async function deliverCompletion(
  ctx: DeliverContext,
  controlPlane: ControlPlane,
  job: CompletionAbout & { place: JobPlace; completion: JobCompletion },
): Promise<{ delivery: Delivery; completion: JobCompletion }> {
  const { place, completion } = job;
  if (completion.settled !== undefined) {
    return { delivery: { kind: 'settled', attempts: 0, how: completion.settled.how }, completion };
  }
  const delivery = await sendCompletion(ctx, controlPlane, { ...job, body: completion.body });
  const at = ctx.clock.now().toISOString();
  const { lastError: _, ...before } = completion;
  const tried = { ...before, attempts: completion.attempts + delivery.attempts, lastAttemptAt: at };
  const recorded: JobCompletion =
    delivery.kind === 'undelivered'
      ? { ...tried, lastError: delivery.reason }
      : { ...tried, settled: { at, how: delivery.how, ...toAnswer(delivery.answer) } };
  await writeCompletion(place, recorded);
  return { delivery, completion: recorded };
}

/** One go: a few attempts while the server has trouble of its own. What is refused is told once, here and to the server. */
export async function sendCompletion(
  ctx: DeliverContext,
  controlPlane: ControlPlane,
  job: CompletionAbout & { body: CompletionBody },
): Promise<Delivery> {
  for (let attempts = 1; ; attempts += 1) {
    const error = await tryToComplete(controlPlane, job);
    if (error === undefined) return { kind: 'settled', attempts, how: 'acknowledged' };
    if (error.status === 409) return await settleConflict(ctx, controlPlane, { job, error, attempts });
    if (!error.isTransient) return await settleRefusal(ctx, controlPlane, { job, error, attempts });
    if (attempts >= maxAttempts || ctx.signal.aborted) {
      return { kind: 'undelivered', attempts, reason: describeError(error) };
    }
    await ctx.clock.sleep(planBackoffMs(completionBackoff, attempts, Math.random()), ctx.signal);
  }
}

async function tryToComplete(
  controlPlane: ControlPlane,
  { jobId, body }: { jobId: string; body: CompletionBody },
): Promise<ControlPlaneError | undefined> {
  try {
    await controlPlane.complete(jobId, body);
    return undefined;
  } catch (error) {
    if (error instanceof ControlPlaneError) return error;
    throw error;
  }
}

type Answered = { job: CompletionAbout; error: ControlPlaneError; attempts: number };

/** 409 is said of a job that has ended, and of one that has not begun: its status tells which. */
async function settleConflict(
  ctx: DeliverContext,
  controlPlane: ControlPlane,
  answered: Answered,
): Promise<Delivery> {
  const { job, error, attempts } = answered;
  const ended = { kind: 'settled', attempts, how: 'already-terminal', ...toAnswer(error.answer) } as const;
  const status = await controlPlane.fetchJobStatus(job.jobId).catch(() => undefined);
  if (status === undefined) {
    return job.mode === 'replay' ? ended : await settleRefusal(ctx, controlPlane, answered);
  }
  if (!terminalStatuses.includes(status.toLowerCase())) {
    return { kind: 'undelivered', attempts, reason: `${describeError(error)}, while the job is ${status}` };
  }
  if (job.mode === 'live') {
    await tellOnce(
      ctx,
      controlPlane,
      job,
      `job ${job.jobId} had ended as ${status} before it was completed here`,
    );
  }
  return ended;
}

/** For good: the same answer would come again and again. */
async function settleRefusal(
  ctx: DeliverContext,
  controlPlane: ControlPlane,
  { job, error, attempts }: Answered,
): Promise<Delivery> {
  await tellOnce(ctx, controlPlane, job, describeError(error));
  return { kind: 'settled', attempts, how: 'refused', ...toAnswer(error.answer) };
}

async function tellOnce(
  ctx: DeliverContext,
  controlPlane: ControlPlane,
  { runId, jobId }: CompletionAbout,
  message: string,
): Promise<void> {
  ctx.log.warning(message, { job: jobId });
  const time = ctx.clock.now().toISOString();
  const event = { job_id: jobId, time, level: 'warn', message } as const;
  await controlPlane.sendEvents(runId, [event]).catch((error: unknown) => {
    ctx.log.debug(`cannot tell the server: ${describeError(error)}`);
  });
}

function toAnswer(answer: string | undefined): { answer?: string } {
  return answer === undefined || answer === '' ? {} : { answer };
}
