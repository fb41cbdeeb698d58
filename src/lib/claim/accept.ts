// One job that the server has given us: on disk before anything starts. As long as its answer is kept the job is never ended, as it
// becomes an open job at a later turn; one that cannot be written down at all is ended at once, so that it does not hang on the server.
import type { UnreadableClaimError } from '../control-plane/control-plane.ts';
import { describeError, InputError } from '../errors.ts';
import { dropAnswer, type KeptAnswer, readAnswers } from '../jobs/answers.ts';
import { findJob, readJob } from '../jobs/book.ts';
import { sendCompletion } from '../jobs/deliver.ts';
import { type JobClaim, jobKey } from '../jobs/records.ts';
import { fillSlot, giveSlotBack } from '../jobs/slots.ts';
import { buildFailure } from '../ploy/completion.ts';
import { isRecord } from '../state/shape.ts';
import type { ClaimSession } from './session.ts';

/**
 * `accepted` is a new job. `refused`: nothing was started, and asking at once would give the same again. `kept`: what is left to be
 * done could not be done now; the answer stays, and counts as a slot.
 */
export type Acceptance =
  | { kind: 'accepted'; jobId: string }
  | { kind: 'refused' }
  | { kind: 'kept'; reason: string };

type Kept = Omit<KeptAnswer, 'payload'>;

/** What could not be made a job of before: by a claimer that was killed, or at an earlier turn. */
export async function acceptKeptAnswers(session: ClaimSession): Promise<Acceptance[]> {
  const { ctx } = session;
  const acceptances: Acceptance[] = [];
  for (const { payload, ...kept } of readAnswers(ctx)) {
    const ids = readIds(payload);
    const place = ids === undefined ? undefined : await findJob(ctx, ids.jobId);
    // Killed between the two: the job is there, and the pass goes on with it.
    if (place?.isOpen === true) dropAnswer(ctx, kept.name);
    else acceptances.push(await acceptClaim(session, payload, kept));
  }
  return acceptances;
}

export async function acceptClaim(session: ClaimSession, raw: unknown, kept?: Kept): Promise<Acceptance> {
  const { ctx } = session;
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
    return await settleUnopened(session, { claim, kept, error });
  }
  // What goes wrong there is no reason to end a job that is here.
  if (!isNew) return await meetAgain(session, claim, kept);
  ctx.log.info(`claimed job ${ids.jobId}`, { job: ids.jobId, serverRun: ids.runId });
  await start(session, ids.jobId);
  return { kind: 'accepted', jobId: ids.jobId };
}

/** Whatever keeps it from starting, it is on disk: tending starts it. */
async function start({ ctx, runners }: ClaimSession, jobId: string): Promise<void> {
  await runners.start(jobKey(jobId)).catch((error: unknown) => {
    ctx.log.error(`cannot start job ${jobId}: ${describeError(error)}`, { job: jobId });
  });
}

/** By hand: the whole is checked by the job's own process, which ends the job with the reason. */
function readIds(raw: unknown): { runId: string; jobId: string } | undefined {
  if (!isRecord(raw)) return undefined;
  const { id, job_id: jobId } = raw;
  if (typeof jobId !== 'string' || jobId.trim() === '') return undefined;
  return { runId: typeof id === 'string' && id.trim() !== '' ? id : 'unknown', jobId };
}

/** By its ids, which are looked for in what cannot be parsed: a job that is given and not ended hangs on the server. */
export async function endUnreadable(session: ClaimSession, error: UnreadableClaimError): Promise<void> {
  const find = (name: string): string | undefined =>
    new RegExp(`"${name}"\\s*:\\s*"([^"\\\\]{1,200})"`).exec(error.text)?.[1];
  const jobId = find('job_id');
  if (jobId === undefined) {
    session.ctx.log.error(`${error.message}: if it gave a job, that job hangs on the server`);
    return;
  }
  if ((await findJob(session.ctx, jobId)) !== undefined) return;
  await endUnwritten(session, { jobId, runId: find('id') ?? 'unknown' }, error.message);
}

/** Given once more: what is open here goes on, and what has ended is told again and never run again. */
async function meetAgain(
  session: ClaimSession,
  { jobId, runId }: JobClaim,
  kept: Kept | undefined,
): Promise<Acceptance> {
  const { ctx, controlPlane } = session;
  const place = await findJob(ctx, jobId);
  ctx.log.warning(`the server gave job ${jobId} once more: it is not run again`, { job: jobId });
  if (place?.isOpen === true) await start(session, jobId);
  if (place?.isOpen === false) {
    const read = await readJob(ctx, place, false).catch((error: unknown) => {
      ctx.log.warning(describeError(error), { job: jobId });
    });
    const body = read?.completion?.body ?? buildFailure({ error: 'it had ended here before', durationMs: 0 });
    const delivery = await sendCompletion(ctx, controlPlane, { jobId, runId, mode: 'replay', body });
    if (delivery.kind === 'undelivered') {
      // Without the answer nobody would tell it again.
      return { kind: 'kept', reason: `the end of job ${jobId} is not told again: ${delivery.reason}` };
    }
  }
  if (kept !== undefined) dropAnswer(ctx, kept.name);
  return { kind: 'refused' };
}

type Unopened = { claim: JobClaim; kept: Kept | undefined; error: unknown };

async function settleUnopened(session: ClaimSession, unopened: Unopened): Promise<Acceptance> {
  const { claim, kept, error } = unopened;
  const { jobId } = claim;
  const reason = `cannot open job ${jobId}: ${describeError(error)}`;
  // A claim that is refused here will be at every turn.
  if (kept !== undefined && !(error instanceof InputError)) return { kind: 'kept', reason };
  // What failed may have come after the job was there.
  const place = await findJob(session.ctx, jobId).catch(() => undefined);
  if (place !== undefined) session.ctx.log.warning(reason, { job: jobId });
  else if (!(await endUnwritten(session, claim, describeError(error))) && kept !== undefined) {
    return { kind: 'kept', reason };
  }
  if (kept !== undefined) dropAnswer(session.ctx, kept.name);
  return { kind: 'refused' };
}

async function endUnwritten(
  { ctx, controlPlane }: ClaimSession,
  { jobId, runId }: Pick<JobClaim, 'jobId' | 'runId'>,
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
