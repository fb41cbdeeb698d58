// How long a job that has ended waits for a server in trouble, with its log, its diff and its artifacts: as long as the server
// is away, since the job's end could not be told either; but what it alone does not take, while it answers, is let go in time.
import { ControlPlaneError } from '../control-plane/control-plane.ts';
import { judgeAnswer } from '../jobs/verdict.ts';
import type { JobSession } from './session.ts';

/** After the container's end, trouble is the server's and no answer. */
const patienceMs = 600_000;

/** Whether what has failed so is left to a later run. */
export async function isLeftToLater(session: JobSession, error: unknown): Promise<boolean> {
  if (!isTrouble(error)) return false;
  const { ctx, progress, controlPlane, claim } = session;
  const isEarly =
    progress.phase !== 'ended' || ctx.clock.now().getTime() - Date.parse(progress.since) < patienceMs;
  if (isEarly) return true;
  return await controlPlane.fetchJobStatus(claim.jobId).then(() => false, isTrouble);
}

/** The server's own, or of a token or an hour, as of the job's end. */
function isTrouble(error: unknown): boolean {
  return error instanceof ControlPlaneError && judgeAnswer(error) !== 'refused';
}
