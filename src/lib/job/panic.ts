// The end of a job in which a bug of ours has shown: told as an error, since nobody would tell another one.
import { describeError, InternalError, ReeveError } from '../errors.ts';
import { writeCompletion } from '../jobs/book.ts';
import { deliverCompletion } from '../jobs/deliver.ts';
import { buildFailure } from '../ploy/completion.ts';
import type { JobWork } from './perform.ts';
import type { JobSession } from './session.ts';

/** A bug of ours is the end of the job as well: the server is told, as far as it can be. */
export async function endByPanic(
  { session, watch, container }: Pick<JobWork, 'session' | 'watch' | 'container'>,
  error: unknown,
): Promise<void> {
  if (!isUnforeseen(error) || session.completion !== undefined) return;
  const reason = `the node failed: ${describeError(error)}`;
  const { ctx, claim, place, controlPlane, progress } = session;
  const durationMs = ctx.clock.now().getTime() - Date.parse(claim.claimedAt);
  const isCancelled = (watch.cancelled ?? progress.cancelled) !== undefined;
  const body = buildFailure({ error: reason, durationMs, isCancelled });
  const completion = { body, decidedAt: ctx.clock.now().toISOString(), attempts: 0 };
  try {
    await writeCompletion(place, completion);
    // Nobody waits for it any more; whoever closes the job removes it.
    if (container === 'running') await killContainer(session);
    await session.tell('error', reason);
    await deliverCompletion(ctx, controlPlane, { ...claim, place, completion, mode: 'live' });
  } catch (second) {
    ctx.log.warning(`cannot tell the server of it: ${describeError(second)}`, { job: claim.jobId });
  }
}

/** Of what has failed under a stop: undefined where it is no more than the stop itself, or an answer. */
export function describeBug(error: unknown): string | undefined {
  const isAbort = error instanceof Error && error.name === 'AbortError';
  return isAbort || !isUnforeseen(error) ? undefined : describeError(error);
}

/** No answer, but a bug of ours. */
function isUnforeseen(error: unknown): boolean {
  return !(error instanceof ReeveError) || error instanceof InternalError;
}

async function killContainer({ engine, containerId, ctx, claim }: JobSession): Promise<void> {
  await engine.killContainer(containerId, 'SIGKILL').catch((error: unknown) => {
    ctx.log.warning(describeError(error), { job: claim.jobId });
  });
}
