// One job that the server has given us: on disk before anything starts. A job that cannot be written down is ended at once, so
// that it does not hang on the server.
import { describeError } from '../errors.ts';
import { dropAnswer, type KeptAnswer, readAnswers } from '../jobs/answers.ts';
import { findJob, readJob } from '../jobs/book.ts';
import { sendCompletion } from '../jobs/deliver.ts';
import { type JobClaim, jobKey } from '../jobs/records.ts';
import { fillSlot, giveSlotBack } from '../jobs/slots.ts';
import { buildFailure } from '../ploy/completion.ts';
import { isRecord } from '../state/shape.ts';
import type { ClaimSession } from './session.ts';

/** `accepted` is a new job. `refused`: nothing was started, and asking at once would give the same again. */
export type Acceptance = { kind: 'accepted' | 'refused'; jobId?: string };

type Kept = Omit<KeptAnswer, 'payload'>;

/** What a claimer had been answered that was killed before it could make a job of it. */
export async function acceptKeptAnswers(session: ClaimSession): Promise<void> {
  const { ctx } = session;
  for (const { payload, ...kept } of readAnswers(ctx)) {
    const ids = readIds(payload);
    // Killed between the two: the job is there, and the pass goes on with it.
    if (ids !== undefined && (await findJob(ctx, ids.jobId)) !== undefined) dropAnswer(ctx, kept.name);
    else await acceptClaim(session, payload, kept);
  }
}

export async function acceptClaim(session: ClaimSession, raw: unknown, kept?: Kept): Promise<Acceptance> {
  const { ctx, runners } = session;
  const ids = readIds(raw);
  if (ids === undefined) {
    giveSlotBack(ctx);
    if (kept !== undefined) dropAnswer(ctx, kept.name);
    ctx.log.error('the server gave a job without an id: nobody can be told of it');
    return { kind: 'refused' };
  }
  const claim: JobClaim = {
    source: 'claim',
    claimedAt: kept?.claimedAt ?? ctx.clock.now().toISOString(),
    ...ids,
    payload: raw,
  };
  let isNew: boolean;
  try {
    isNew = await fillSlot(ctx, claim, kept?.name);
  } catch (error) {
    const isTold = await endUnwritten(session, claim, describeError(error));
    if (isTold && kept !== undefined) dropAnswer(ctx, kept.name);
    return { kind: 'refused', jobId: ids.jobId };
  }
  // What goes wrong there is no reason to end a job that is here.
  if (!isNew) return await meetAgain(session, claim);
  ctx.log.info(`claimed job ${ids.jobId}`, { job: ids.jobId, serverRun: ids.runId });
  // Whatever keeps it from starting, it is on disk: tending starts it.
  await runners.start(jobKey(ids.jobId)).catch((error: unknown) => {
    ctx.log.error(`cannot start job ${ids.jobId}: ${describeError(error)}`, { job: ids.jobId });
  });
  return { kind: 'accepted', jobId: ids.jobId };
}

/** By hand: the whole is checked by the job's own process, which ends the job with the reason. */
function readIds(raw: unknown): { runId: string; jobId: string } | undefined {
  if (!isRecord(raw)) return undefined;
  const { id, job_id: jobId } = raw;
  if (typeof jobId !== 'string' || jobId.trim() === '') return undefined;
  return { runId: typeof id === 'string' && id.trim() !== '' ? id : 'unknown', jobId };
}

/** Given once more: what is open here goes on, and what has ended is told again and never run again. */
async function meetAgain(session: ClaimSession, { jobId, runId }: JobClaim): Promise<Acceptance> {
  const { ctx, runners, controlPlane } = session;
  const place = await findJob(ctx, jobId);
  ctx.log.warning(`the server gave job ${jobId} once more: it is not run again`, { job: jobId });
  if (place?.isOpen === true) await runners.start(place.key);
  if (place?.isOpen === false) {
    const read = await readJob(ctx, place, false).catch((error: unknown) => {
      ctx.log.warning(describeError(error), { job: jobId });
    });
    const body = read?.completion?.body ?? buildFailure({ error: 'it had ended here before', durationMs: 0 });
    await sendCompletion(ctx, controlPlane, { jobId, runId, mode: 'replay', body });
  }
  return { kind: 'refused', jobId };
}

async function endUnwritten(
  { ctx, controlPlane }: ClaimSession,
  { jobId, runId }: JobClaim,
  cause: string,
): Promise<boolean> {
  const error = `cannot keep the job: ${cause}`;
  ctx.log.error(`${error}: job ${jobId} is ended`, { job: jobId });
  giveSlotBack(ctx);
  const body = buildFailure({ error, durationMs: 0 });
  const delivery = await sendCompletion(ctx, controlPlane, { jobId, runId, mode: 'live', body });
  if (delivery.kind === 'undelivered') {
    ctx.log.error(`job ${jobId} hangs on the server: it could be neither kept nor ended: ${delivery.reason}`);
  }
  return delivery.kind === 'settled';
}
