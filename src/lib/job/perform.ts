// The complete table of a job's steps. Each leaves what it has come to in the records before the next one begins.
import { ImageMissingError, NameTakenError } from '../docker/errors.ts';
import { describeError, InternalError, ReeveError, UnavailableError } from '../errors.ts';
import { closeJob, writeCompletion } from '../jobs/book.ts';
import { deliverCompletion } from '../jobs/deliver.ts';
import { buildCompletion, buildFailure } from '../ploy/completion.ts';
import type { CompletionBody } from '../ploy/wire.ts';
import { planLimits } from './container/limits.ts';
import { pullJobImage } from './container/pull.ts';
import { buildJobContainer, containerName } from './container/spec.ts';
import { askEngine } from './engine-away.ts';
import { findContainer } from './find-container.ts';
import { finishJob } from './finish.ts';
import { followContainer } from './follow.ts';
import type { JobFacts, JobStepKind } from './plan.ts';
import { sendLeftovers } from './results.ts';
import type { JobSession } from './session.ts';
import { tellImage } from './tell-server.ts';
import type { CancelWatch } from './watch-cancel.ts';
import { workspacePaths } from './workspace/paths.ts';
import { type PreparedWorkspace, prepareWorkspace } from './workspace/prepare.ts';

/** What this process knows besides the records. */
export type JobWork = {
  session: JobSession;
  watch: CancelWatch;
  container: JobFacts['container'];
  workspace: PreparedWorkspace | undefined;
  /** The completion was on disk before this process began. */
  isReplay: boolean;
  end: 'closed' | 'undelivered' | undefined;
};

type Handler = (work: JobWork) => Promise<void>;

export const handlers: Readonly<Record<JobStepKind, Handler>> = {
  close,
  deliver,
  refuse: async ({ session }) => {
    const { understood } = session;
    if (understood.kind !== 'refused') throw new InternalError('a job that is understood was refused');
    await fail(session, understood.reason);
  },
  'give-verdict': giveVerdict,
  cancel: async ({ session, watch }) => {
    const cancelled = watch.cancelled ?? session.progress.cancelled;
    if (cancelled !== undefined) session.change({ cancelled });
    const error = `cancelled by the ${cancelled?.by ?? 'server'}: ${cancelled?.reason ?? ''}`;
    await decideUnrun(session, buildFailure({ error, durationMs: sinceClaim(session), isCancelled: true }));
  },
  prepare: (work) => orFail(work, () => prepare(work)),
  create: async (work) => {
    await work.session.record({ phase: 'creating' });
    await orFail(work, () => create(work));
  },
  start: startOrLeave,
  follow: async (work) => {
    const { session } = work;
    if (session.understood.kind === 'work') session.logPaths = workspacePaths(session.ctx, session.claim);
    work.container = (await followContainer(work.session, work.watch)) ? 'ended' : 'none';
  },
  'give-up': async ({ session, watch }) => {
    const cancelled = watch.cancelled ?? session.progress.cancelled;
    const error = 'the container is gone: it was removed before its end could be seen';
    const isCancelled = cancelled !== undefined;
    if (!isCancelled) await session.tell('error', `job ${session.claim.jobId}: ${error}`);
    await decideUnrun(session, buildFailure({ error, durationMs: sinceClaim(session), isCancelled }));
  },
  finish: async ({ session }) => {
    await decide(session, await finishJob(session));
  },
};

/** On disk before it is sent. */
async function decide(session: JobSession, body: CompletionBody): Promise<void> {
  const completion = { body, decidedAt: session.ctx.clock.now().toISOString(), attempts: 0 };
  await writeCompletion(session.place, completion);
  session.completion = completion;
}

/** Of a job without a container's end. Its artifacts may be lost by a crash, which keeps nobody from its end. */
async function decideUnrun(session: JobSession, body: CompletionBody): Promise<void> {
  await decide(session, body);
  await sendLeftovers(session, body.status);
}

async function fail(session: JobSession, error: string): Promise<void> {
  await session.tell('error', error);
  await decideUnrun(session, buildFailure({ error, durationMs: sinceClaim(session) }));
}

/** What fails before the container runs is the job's end. A stop of ours, or records that cannot be written, are not. */
async function orFail({ session, watch }: JobWork, step: () => Promise<void>): Promise<void> {
  try {
    await step();
  } catch (error) {
    session.requireGoingOn();
    // Then it does not matter any more what else has failed, if it was not the cancellation that ended it.
    if (watch.cancelled !== undefined) return;
    if (!(error instanceof ReeveError) || error instanceof InternalError) throw error;
    await fail(session, describeError(error));
  }
}

/** Registries and repositories may take hours: whoever wants the job to end does not wait for them. */
async function prepare(work: JobWork): Promise<void> {
  const { session } = work;
  const { execution, payload } = requireContainerWork(session);
  const signal = AbortSignal.any([session.ctx.signal, work.watch.signal]);
  const pulled = session.time('pull', () =>
    askEngine(session, signal, () => pullJobImage(session, execution.image, signal)),
  );
  pulled.catch(() => {});
  const told = tellImage(session, execution.image);
  told.catch(() => {});
  const { ctx, controlPlane } = session;
  work.workspace = await session.time('hydrate', () =>
    prepareWorkspace(ctx, { payload, execution, controlPlane, signal }),
  );
  session.logPaths = work.workspace.paths;
  await pulled;
  await told;
  session.requireGoingOn();
  await work.watch.look(1000);
}

async function create(work: JobWork): Promise<void> {
  const { session, workspace, watch } = work;
  const { execution, payload } = requireContainerWork(session);
  const { overrides } = session.ctx;
  const { key } = session.place;
  const spec = buildJobContainer({
    ...{ key, execution, binds: workspace?.binds ?? [] },
    ...{ runId: session.claim.runId, jobId: session.claim.jobId },
    network: overrides.PLOY_DOCKER_NETWORK?.trim() || undefined,
    limits: payload.job_type === 'mig' ? {} : planLimits(overrides),
  });
  const { id } = await session.time('create', () =>
    askEngine(session, watch.signal, () => createOnce(session, spec)),
  );
  session.change({ containerId: id });
  work.container = 'created';
}

/** A request of a run that was killed may have made it after we had looked. */
async function createOnce(
  { engine, place }: JobSession,
  spec: Parameters<JobSession['engine']['createContainer']>[0],
): Promise<{ id: string }> {
  try {
    return await engine.createContainer(spec);
  } catch (error) {
    if (error instanceof ImageMissingError || !(error instanceof NameTakenError)) throw error;
    const found = await engine.inspectContainer(containerName(place.key));
    // The engine takes the name before the container is there: that request is still under way.
    if (found === undefined)
      throw new UnavailableError(describeError(error), { cause: error, code: 'engine' });
    const isSame = Object.entries(spec.labels).every(([name, value]) => found.labels[name] === value);
    if (!isSame) throw error;
    return { id: found.id };
  }
}

async function start(work: JobWork): Promise<void> {
  const { session, watch } = work;
  if ((await watch.look(Number.POSITIVE_INFINITY)) !== undefined) return;
  await session.time('start', () => session.engine.startContainer(session.containerId));
  work.container = 'running';
}

/** Where the engine did not answer, the container may run: that is not said to have failed, the next run looks. */
async function startOrLeave(work: JobWork): Promise<void> {
  let lost: UnavailableError | undefined;
  await work.session.record({ phase: 'starting' });
  await orFail(work, async () => {
    await start(work).catch((error: unknown) => {
      if (!(error instanceof UnavailableError)) throw error;
      lost = error;
    });
  });
  if (lost !== undefined) throw lost;
}

async function giveVerdict({ session }: JobWork): Promise<void> {
  const { understood } = session;
  if (understood.kind !== 'work') throw new InternalError('a job without a claim was judged');
  const { execution, payload } = understood;
  if (execution.kind === 'container') throw new InternalError('a job with a container was judged');
  const isPassed = execution.kind === 'passed';
  const body = buildCompletion({
    jobType: payload.job_type,
    exitCode: isPassed ? 0 : 1,
    isCancelled: false,
    durationMs: sinceClaim(session),
    metadata: { reason: execution.reason },
    repoShaOut: payload.repo_sha_in,
  });
  await decide(session, body);
}

async function deliver(work: JobWork): Promise<void> {
  const { session } = work;
  const { completion, claim, place } = session;
  if (completion === undefined) throw new InternalError('there is no completion to deliver');
  const about = { ...claim, place, completion, mode: work.isReplay ? 'replay' : 'live' } as const;
  const deliver = () => deliverCompletion(session.ctx, session.controlPlane, about);
  const { delivery, completion: tried } = await session.time('complete', deliver);
  session.completion = tried;
  if (delivery.kind === 'settled') return;
  session.ctx.log.warning(delivery.reason, { job: claim.jobId });
  work.end = 'undelivered';
}

/** The server knows how it ended: the container is of no use any more, and would only be left behind by a crash. */
async function close(work: JobWork): Promise<void> {
  const { session } = work;
  const { ctx, place, progress } = session;
  if (progress.phase !== 'preparing') await session.time('remove', () => removeContainer(session));
  await session.record({});
  await closeJob(ctx, place.key);
  work.end = 'closed';
}

/** By its name as well: one that was asked for and never seen may be there. Only with the job's labels. */
async function removeContainer({ engine, ctx, place, claim, progress }: JobSession): Promise<void> {
  try {
    const found = await findContainer(engine, { key: place.key, claim, progress });
    if (found !== undefined) await engine.removeContainer(found.id, { force: true, anonymousVolumes: true });
  } catch (error) {
    ctx.log.warning(`cannot remove the container: ${describeError(error)}`, { job: claim.jobId });
  }
}

function requireContainerWork({ understood }: JobSession) {
  if (understood.kind === 'work' && understood.execution.kind === 'container') {
    return { payload: understood.payload, execution: understood.execution };
  }
  throw new InternalError('a job that needs no container was to have one');
}

function sinceClaim({ ctx, claim }: JobSession): number {
  return ctx.clock.now().getTime() - Date.parse(claim.claimedAt);
}
