// `job cancel ID`: asks for the end of an open job by a record that its runner looks at. The container is not touched here.
import type { Context } from '../../context.ts';
import { InputError } from '../../errors.ts';
import { writeCancel } from '../../jobs/book.ts';
import type { JobCancel } from '../../jobs/records.ts';
import type { Outcome } from '../../outcome.ts';
import { confirm } from '../../report/confirm.ts';
import { ago } from '../../status/ago.ts';
import { describeJob } from './describe.ts';
import { type JobFacts, requireJob } from './gather.ts';

export type CancelRequest = { id: string; reason: string; yes: boolean };

type CancelContext = Pick<Context, 'paths' | 'clock' | 'log' | 'interactive' | 'signal'>;

/** Throws InputError for a job that is unknown or has ended. */
export async function cancelJob(ctx: CancelContext, { id, reason, yes }: CancelRequest): Promise<Outcome> {
  const facts = await requireJob(ctx, id, 'cancel');
  requireGoingOn(facts, ctx.clock.now());
  const earlier = facts.progress?.cancelled ?? facts.cancel;
  if (earlier !== undefined) return renderKnown(facts, earlier, ctx.clock.now());
  const { id: jobId, run } = describeJob(facts);
  if (!(await confirm(ctx, yes, `cancel job ${jobId} of run ${run ?? '?'}?`))) {
    return { outcome: 'nothing-to-do', text: ['nothing was done'], data: { job: jobId, cancel: null } };
  }
  const cancel: JobCancel = { at: ctx.clock.now().toISOString(), reason, by: 'operator' };
  const written = await writeCancel(facts, cancel);
  if (written === 'written') return renderCancelled(facts, cancel);
  // Somebody was faster, or the job: either is told as above.
  const later = await requireJob(ctx, id, 'cancel');
  requireGoingOn(later, ctx.clock.now());
  return renderKnown(later, later.cancel ?? cancel, ctx.clock.now());
}

function requireGoingOn({ isOpen, completion, ...facts }: JobFacts, now: Date): void {
  const { id, endedAt } = describeJob({ ...facts, isOpen, completion });
  const status = completion?.body.status;
  if (!isOpen) {
    const as = status === undefined ? '' : ` as ${status}`;
    throw new InputError(`cannot cancel job ${id}: it ended${as} ${ago(endedAt ?? '', now)}`, {
      code: 'ended',
    });
  }
  if (status === undefined) return;
  throw new InputError(
    `cannot cancel job ${id}: it has ended as ${status}, which the server is still to be told`,
    {
      code: 'ended',
    },
  );
}

function renderKnown(facts: JobFacts, cancel: NonNullable<Cancelled>, now: Date): Outcome {
  const { id, held } = describeJob(facts);
  const by = `was asked for ${ago(cancel.at, now)} by the ${cancel.by}: ${cancel.reason}`;
  return {
    outcome: 'nothing-to-do',
    text: [`the end of job ${id} ${by}`, ...(held ? [] : [laterText])],
    data: { job: id, held, cancel },
  };
}

type Cancelled = JobCancel | NonNullable<JobFacts['progress']>['cancelled'];

function renderCancelled(facts: JobFacts, cancel: JobCancel): Outcome {
  const { id, held, containerId } = describeJob(facts);
  const container = containerId === null ? '' : ', and its container is gone within 10 s';
  return {
    outcome: 'done',
    text: [`job ${id} is asked to end: ${held ? `that is noticed within 4 s${container}` : laterText}`],
    data: { job: id, held, cancel },
  };
}

const laterText = 'nobody is at it now: the next claim ends it';
