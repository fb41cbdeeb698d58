// Jobs that the server has given to this node and whose claim's answer never came. Nobody can be told which ones they are, but for
// those that follow a job of ours: a run's jobs stay with one node, and each claim names the job after it. What the server has
// running of these and nobody here knows can never run, and is ended.
import { ControlPlaneError } from '../control-plane/control-plane.ts';
import { describeError } from '../errors.ts';
import { findJob, type JobRecords, listEndedJobs, readJob } from '../jobs/book.ts';
import { sendCompletion } from '../jobs/deliver.ts';
import { endedJobsDir } from '../jobs/records.ts';
import { buildFailure } from '../ploy/completion.ts';
import { isRecord } from '../state/shape.ts';
import type { ClaimSession } from './session.ts';

type NextJob = { jobId: string; runId: string };

/**
 * Assumes that no claim is under way, so that whatever was given is on disk or lost. False where the server could not be asked
 * or told: then it is to be tried again.
 */
export async function endLostJobs(session: ClaimSession): Promise<boolean> {
  for (const next of await listUnknown(session)) {
    try {
      if ((await isRunning(session, next)) && !(await endLostJob(session, next))) return false;
    } catch (error) {
      session.ctx.log.debug(describeError(error));
      return false;
    }
  }
  return true;
}

/** Those that were queued by a success of ours, and that are not here. */
async function listUnknown({ ctx }: ClaimSession): Promise<NextJob[]> {
  const found: NextJob[] = [];
  for (const key of await listEndedJobs(ctx)) {
    const directory = `${endedJobsDir(ctx.paths)}/${key}`;
    const records = await readJob(ctx, { key, directory, isOpen: false }, false).catch(() => undefined);
    const next = records === undefined ? undefined : readNext(records);
    if (next !== undefined && (await findJob(ctx, next.jobId)) === undefined) found.push(next);
  }
  return found;
}

function readNext({ claim, completion }: JobRecords): NextJob | undefined {
  const payload = claim?.payload;
  if (claim === undefined || !isRecord(payload) || completion?.body.status !== 'Success') return undefined;
  const { next_id: jobId } = payload;
  return typeof jobId === 'string' && jobId.trim() !== '' ? { jobId, runId: claim.runId } : undefined;
}

/** One that this node does not have is refused to it: that is an answer. */
async function isRunning({ controlPlane }: ClaimSession, { jobId }: NextJob): Promise<boolean> {
  try {
    return (await controlPlane.fetchJobStatus(jobId)).toLowerCase() === 'running';
  } catch (error) {
    if (error instanceof ControlPlaneError && !error.isTransient) return false;
    throw error;
  }
}

async function endLostJob({ ctx, controlPlane }: ClaimSession, next: NextJob): Promise<boolean> {
  // Somebody may have brought it meanwhile, through the node's own API.
  if ((await findJob(ctx, next.jobId)) !== undefined) return true;
  const error = 'the answer to its claim never came to the node: it could not be run';
  ctx.log.error(`job ${next.jobId} is lost: ${error}`, { job: next.jobId, serverRun: next.runId });
  const body = buildFailure({ error, durationMs: 0 });
  const { kind } = await sendCompletion(ctx, controlPlane, { ...next, mode: 'replay', body });
  return kind === 'settled';
}
