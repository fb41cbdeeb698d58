// `reeve job run KEY`: one job to its end, from wherever a run before has left it. Its lock says that nobody else has it.
import { dirname, join } from 'node:path';
import type { Context } from '../context.ts';
import { openControlPlane } from '../control-plane/client.ts';
import { openEngine } from '../docker/client.ts';
import type { Engine } from '../docker/types.ts';
import { ConfigError, describeError, InputError, InternalError, UnavailableError } from '../errors.ts';
import { stayInUnit } from '../exec/systemd.ts';
import { ExitCode } from '../exit-codes.ts';
import { loadHttp } from '../http/client.ts';
import { findJob, type JobRecords, readJob } from '../jobs/book.ts';
import { readJobId } from '../jobs/job-id.ts';
import type { JobClaim } from '../jobs/records.ts';
import { jobLock } from '../lock/names.ts';
import { withLock } from '../lock/with-locks.ts';
import type { Outcome } from '../outcome.ts';
import { findContainer, toContainerFact } from './find-container.ts';
import { findLostClaim } from './lost-claim.ts';
import { describeBug, endByPanic } from './panic.ts';
import { handlers, type JobWork } from './perform.ts';
import { type JobFacts, planJob } from './plan.ts';
import { createSession, type JobSession, type Understood } from './session.ts';
import { understandClaim } from './understand.ts';
import { watchCancel } from './watch-cancel.ts';

/** Throws BusyError where another process runs it. */
export async function runJob(ctx: Context, id: string, { waitMs }: { waitMs: number }): Promise<Outcome> {
  const startedAtMs = performance.now();
  let isKept = false;
  try {
    const held = withLock(ctx, jobLock(id), () => runUnderLock(ctx, id), { waitMs });
    // While the kernel is asked for the lock.
    loadHttp();
    const outcome = await held;
    isKept = outcome.exitCode === ExitCode.unavailable;
    return outcome;
  } catch (error) {
    isKept = error instanceof UnavailableError;
    throw error;
  } finally {
    // Its unit begins again two seconds after this.
    if (isKept) await stayInUnit(ctx, startedAtMs);
  }
}

async function runUnderLock(ctx: Context, id: string): Promise<Outcome> {
  const { jobs } = ctx.config;
  if (jobs === undefined) throw new ConfigError('cannot run a job: the configuration has no section "jobs"');
  const place = await findJob(ctx, id);
  if (place === undefined) throw new InputError(`cannot run job ${id}: there is none`);
  if (!place.isOpen) return { outcome: 'nothing-to-do', text: [`job ${id} has ended`] };
  const records = await readJob(ctx, place);
  const session = await openSession(ctx, records);
  const work: JobWork = {
    session,
    watch: watchCancel(session),
    container: 'none',
    workspace: undefined,
    isReplay: records.completion !== undefined,
    end: undefined,
  };
  try {
    await runSteps(work, records);
    return renderEnd(work);
  } catch (error) {
    if (ctx.signal.aborted) {
      const bug = describeBug(error);
      if (bug !== undefined) ctx.log.warning(bug, { job: session.claim.jobId });
      return renderStop(session);
    }
    await endByPanic(work, error);
    throw error;
  } finally {
    work.watch.stop();
    session.controlPlane.close();
    session.engine.close();
  }
}

async function openSession(ctx: Context, records: JobRecords): Promise<JobSession> {
  const { jobs, cluster } = ctx.config;
  if (jobs === undefined) throw new InternalError('a job without a section');
  const file = ctx.overrides.PLOY_DOCKER_AUTH_CONFIG_FILE;
  const engine = openEngine({
    socket: cluster?.docker.socket ?? '/var/run/docker.sock',
    log: ctx.log,
    signal: ctx.signal,
    logins: {
      directory: join(dirname(ctx.paths.configFile), 'docker'),
      tokenFile: join(ctx.paths.runDir, 'ecr.json'),
      file,
    },
  });
  try {
    const known = records.claim ?? (await findLost(ctx, engine, records));
    const understood = await understand(known, records, jobs.serverUrl);
    const claim = known ?? (await guessClaim(ctx, records));
    const controlPlane = openControlPlane(ctx, jobs);
    return createSession({ ctx, jobs, claim, understood, place: records, controlPlane, engine });
  } catch (error) {
    engine.close();
    throw error;
  }
}

/** Whoever only delivers needs no engine. */
async function findLost(ctx: Context, engine: Engine, records: JobRecords): Promise<JobClaim | undefined> {
  try {
    return await findLostClaim(engine, records, ctx.clock.now());
  } catch (error) {
    if (records.completion === undefined) throw error;
    ctx.log.warning(`cannot look for the container of job ${records.key}: ${describeError(error)}`);
    return undefined;
  }
}

/** What is decided is only told: of that nothing has to be understood. */
async function understand(
  claim: JobClaim | undefined,
  { key, completion }: JobRecords,
  serverUrl: string,
): Promise<Understood> {
  if (claim === undefined) {
    return { kind: 'refused', reason: `the record of the claim of job ${key} is damaged` };
  }
  return completion === undefined ? await understandClaim(claim, serverUrl) : { kind: 'adopted' };
}

/** Where nobody knows its id, the server is told of none that it has. */
async function guessClaim({ clock }: Context, place: JobRecords): Promise<JobClaim> {
  const jobId = (await readJobId(place)) ?? place.key;
  return { source: 'claim', claimedAt: clock.now().toISOString(), runId: '', jobId };
}

async function runSteps(work: JobWork, records: JobRecords): Promise<void> {
  const { session } = work;
  if (records.progress !== undefined || session.claim.source === 'adopted') await lookForContainer(work);
  await work.watch.look(session.progress.phase === 'preparing' ? 60_000 : 0);
  while (work.end === undefined) {
    session.requireGoingOn();
    const step = planJob(gatherFacts(work));
    session.ctx.log.debug(`${step.kind}: ${step.reason}`, { job: session.claim.jobId });
    await handlers[step.kind](work);
  }
}

async function lookForContainer(work: JobWork): Promise<void> {
  const { session } = work;
  // Whoever only delivers needs no engine.
  if (session.completion !== undefined) {
    work.container = 'ended';
    return;
  }
  const { engine, claim, progress, place } = session;
  const found = await findContainer(engine, { key: place.key, claim, progress });
  work.container = toContainerFact(found);
  if (found !== undefined) session.change({ containerId: found.id });
}

function gatherFacts({ session, watch, container, workspace }: JobWork): JobFacts {
  const { completion, progress, understood } = session;
  return {
    completion:
      completion === undefined ? 'none' : completion.settled === undefined ? 'unsettled' : 'settled',
    phase: progress.phase,
    understood: understood.kind === 'work' ? understood.execution.kind : understood.kind,
    container,
    isCancelled: watch.cancelled !== undefined || progress.cancelled !== undefined,
    isPrepared: workspace !== undefined,
  };
}

function renderEnd({ session, end }: JobWork): Outcome {
  const { claim, completion, progress } = session;
  const data = { job: claim.jobId, run: claim.runId, status: completion?.body.status, steps: progress.steps };
  if (end === 'closed') {
    return { outcome: 'done', text: [`job ${claim.jobId}: ${completion?.body.status ?? 'ended'}`], data };
  }
  return {
    outcome: 'failed',
    exitCode: ExitCode.unavailable,
    text: [`job ${claim.jobId} has ended, and the server could not be told: ${completion?.lastError ?? ''}`],
    data,
  };
}

/** Its container runs on; the next run takes it up again. */
function renderStop({ claim }: JobSession): Outcome {
  return { outcome: 'deferred', text: [`stopped; job ${claim.jobId} goes on with its next run`] };
}
