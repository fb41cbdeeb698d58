// The end of a job on its way to the server. Sending it twice is harmless, losing it is not: it is on disk before it is sent,
// sent until an answer has settled it, and what came of it is written down afterwards. No job is left running there: an end that
// the server refuses while it believes the job to run is replaced by an error, once.
import type { BaseContext } from '../context.ts';
import { type ControlPlane, ControlPlaneError } from '../control-plane/control-plane.ts';
import { describeError } from '../errors.ts';
import { completionBackoff, planBackoffMs } from '../http/retry.ts';
import { buildFailure } from '../ploy/completion.ts';
import type { CompletionBody } from '../ploy/wire.ts';
import { type JobPlace, writeCompletion } from './book.ts';
import type { JobCompletion } from './records.ts';
import { judgeAnswer, judgeStatus, type StatusVerdict } from './verdict.ts';

type DeliverContext = Pick<BaseContext, 'paths' | 'clock' | 'log' | 'signal'>;

/** `live`: by whoever has just seen the job end. `replay`: later, when the server may have had it already. */
export type DeliveryMode = 'live' | 'replay';

type Settled = NonNullable<JobCompletion['settled']>;

export type Delivery =
  | { kind: 'settled'; attempts: number; how: Settled['how']; answer?: string }
  /** To be sent again later. */
  | { kind: 'undelivered'; attempts: number; reason: string };

export type CompletionAbout = {
  runId: string;
  jobId: string;
  mode: DeliveryMode;
  /** While the server has trouble: 4, where it is not said. */
  maxAttempts?: number;
};

const mostAttempts = 4;

/** Sends it unless it is settled already, and records what came of it in `completion.json`. Assumes the job's lock. */
export async function deliverCompletion(
  ctx: DeliverContext,
  controlPlane: ControlPlane,
  job: CompletionAbout & { place: JobPlace; completion: JobCompletion },
): Promise<{ delivery: Delivery; completion: JobCompletion }> {
  const { place } = job;
  let { completion } = job;
  if (completion.settled !== undefined) {
    return { delivery: { kind: 'settled', attempts: 0, how: completion.settled.how }, completion };
  }
  const now = (): string => ctx.clock.now().toISOString();
  const delivery = await sendCompletion(ctx, controlPlane, {
    ...job,
    body: completion.body,
    isReplaced: completion.refused !== undefined,
    // As every end it is on disk before it is sent.
    beforeReplaced: async (body, answer) => {
      completion = { ...completion, body, refused: { at: now(), body: completion.body, answer } };
      await writeCompletion(place, completion);
    },
  });
  const { lastError: _, ...before } = completion;
  const tried = { ...before, attempts: completion.attempts + delivery.attempts, lastAttemptAt: now() };
  const recorded: JobCompletion =
    delivery.kind === 'undelivered'
      ? { ...tried, lastError: delivery.reason }
      : { ...tried, settled: { at: now(), how: delivery.how, ...toAnswer(delivery.answer) } };
  await writeCompletion(place, recorded);
  return { delivery, completion: recorded };
}

type Sending = CompletionAbout & {
  body: CompletionBody;
  /** The body has taken the place of one that was refused: there is no other. */
  isReplaced?: boolean;
  beforeReplaced?: (body: CompletionBody, answer: string) => Promise<void>;
};

/** One go: a few attempts while the server has trouble of its own. What is refused is told once, here and to the server. */
export async function sendCompletion(
  ctx: DeliverContext,
  controlPlane: ControlPlane,
  job: Sending,
): Promise<Delivery> {
  const first = await sendBody(ctx, controlPlane, job);
  if (first.kind !== 'unfit') return first;
  const { error } = first;
  const reason = `the server refused how the job had ended (${job.body.status}): ${error.answer || error.message}`;
  await tellOnce(ctx, controlPlane, job, `job ${job.jobId} is ended as an error: ${reason}`);
  const body = buildFailure({ error: reason, durationMs: Number(job.body.stats?.duration_ms ?? 0) });
  await job.beforeReplaced?.(body, error.answer);
  const second = await sendBody(ctx, controlPlane, { ...job, body, isReplaced: true });
  const attempts = first.attempts + second.attempts;
  if (second.kind === 'unfit') return toRefused(second.error, attempts);
  return { ...second, attempts };
}

/** `unfit`: refused, while the server believes that the job runs. */
type Sent = Delivery | { kind: 'unfit'; attempts: number; error: ControlPlaneError };

async function sendBody(ctx: DeliverContext, controlPlane: ControlPlane, job: Sending): Promise<Sent> {
  const { maxAttempts = mostAttempts } = job;
  for (let attempts = 1; ; attempts += 1) {
    const error = await tryToComplete(controlPlane, job);
    if (error === undefined) return { kind: 'settled', attempts, how: 'acknowledged' };
    const verdict = judgeAnswer(error);
    const isLast = attempts >= maxAttempts || ctx.signal.aborted;
    if (verdict === 'refused') {
      const sent = await settleRefusal(ctx, controlPlane, { job, error, attempts, isLast });
      if (sent !== 'again') return sent;
    } else if (verdict === 'not-now' || isLast) {
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

type Refused = { job: Sending; error: ControlPlaneError; attempts: number };

/** 409 is said of a job that has ended, of one that waits, and of an end that does not fit: the job's status tells which. */
async function settleRefusal(
  ctx: DeliverContext,
  controlPlane: ControlPlane,
  { job, error, attempts, isLast }: Refused & { isLast: boolean },
): Promise<Sent | 'again'> {
  const { status, verdict } = await askForStatus(controlPlane, job.jobId);
  if (mayPass(error, verdict) && !isLast) return 'again';
  if (verdict === 'ended') return await settleEnded(ctx, controlPlane, { job, error, attempts }, status);
  if (verdict === 'running' && job.isReplaced !== true) return { kind: 'unfit', attempts, error };
  if (verdict === 'unknown') {
    if (error.status === 409 && job.mode === 'replay') return toEnded(error, attempts);
    return { kind: 'undelivered', attempts, reason: describeError(error) };
  }
  await tellOnce(ctx, controlPlane, job, describeError(error));
  return toRefused(error, attempts);
}

async function settleEnded(
  ctx: DeliverContext,
  controlPlane: ControlPlane,
  { job, error, attempts }: Refused,
  status: string,
): Promise<Delivery> {
  // An attempt of ours whose answer was lost.
  const isOurs = job.body.status.toLowerCase() === status.toLowerCase() && attempts > 1;
  if (isOurs) return { kind: 'settled', attempts, how: 'acknowledged' };
  const words = `job ${job.jobId} had ended as ${status} before it was completed here`;
  if (job.mode === 'live') await tellOnce(ctx, controlPlane, job, words);
  return toEnded(error, attempts);
}

function toEnded(error: ControlPlaneError, attempts: number): Delivery {
  return { kind: 'settled', attempts, how: 'already-terminal', ...toAnswer(error.answer) };
}

/** A conflict that its job's status does not bear out may be one of the moment: it costs the job its end only when it stays. */
function mayPass({ status }: ControlPlaneError, verdict: StatusVerdict): boolean {
  return status === 409 && (verdict === 'running' || verdict === 'unknown');
}

async function askForStatus(
  controlPlane: ControlPlane,
  jobId: string,
): Promise<{ status: string; verdict: StatusVerdict }> {
  try {
    const status = await controlPlane.fetchJobStatus(jobId);
    return { status, verdict: judgeStatus(status) };
  } catch (error) {
    // A question is in no conflict with anything: such an answer is about something else.
    const isAnswer = error instanceof ControlPlaneError && error.status !== 409;
    const isRefused = isAnswer && judgeAnswer(error) === 'refused';
    return { status: '', verdict: isRefused && (error.status ?? 0) >= 400 ? 'none' : 'unknown' };
  }
}

/** For good: the same answer would come again and again. */
function toRefused(error: ControlPlaneError, attempts: number): Delivery {
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
