// A container that has been started, to its end: its log goes out while it runs, and whoever wants it to end is heard.
import { ContainerMissingError } from '../docker/errors.ts';
import type { ContainerDetails } from '../docker/types.ts';
import { describeError, UnavailableError } from '../errors.ts';
import type { ContainerEnd } from '../jobs/records.ts';
import { watchUsage } from './container/usage.ts';
import { createAbsence } from './engine-away.ts';
import { shipLog } from './logs/ship.ts';
import type { JobSession } from './session.ts';
import type { CancelWatch } from './watch-cancel.ts';

const killAgainMs = 1000;

/** False where the container is gone before its end could be known. */
export async function followContainer(session: JobSession, watch: CancelWatch): Promise<boolean> {
  let hasEnded = false;
  const over = new AbortController();
  const ended = waitForEnd(session).finally(() => {
    hasEnded = true;
    over.abort();
  });
  void watchUsage(session, over.signal);
  const shipped = shipLog(session, { hasEnded: () => hasEnded, ended });
  // Its failure is told once the container's end is on disk.
  shipped.catch(() => {});
  const killed = killWhenCancelled(session, watch, ended);
  killed.catch(() => {});
  if (session.progress.phase !== 'running') session.record({ phase: 'running' }).catch(() => {});
  const end = await session.time('wait', () => ended);
  await killed;
  if (end === undefined) {
    await shipped;
    return false;
  }
  await session.record({ phase: 'ended', end });
  await session.time('logs', () => shipped);
  return true;
}

/** Of a job that was recorded as ended by a run before. */
export async function shipRest(session: JobSession): Promise<void> {
  if (session.progress.logs.closed) return;
  const ended = Promise.resolve();
  await session.time('logs', () => shipLog(session, { hasEnded: () => true, ended }));
}

async function waitForEnd(session: JobSession): Promise<ContainerEnd | undefined> {
  const absence = createAbsence();
  for (;;) {
    const found = await lookForEnd(session);
    if (found.kind === 'ended') return found.end;
    if (found.kind === 'running') absence.end();
    else {
      const length = absence.go();
      // The job is taken up again by a later run.
      if (length === 'too-long') throw found.error;
      if (length === 'new') {
        session.ctx.log.warning(describeError(found.error), { job: session.claim.jobId });
      }
    }
    await session.ctx.clock.sleep(500, session.ctx.signal);
    session.requireGoingOn();
  }
}

type FoundEnd =
  | { kind: 'ended'; end: ContainerEnd | undefined }
  | { kind: 'running' }
  | { kind: 'lost'; error: UnavailableError };

async function lookForEnd(session: JobSession): Promise<FoundEnd> {
  const { engine, containerId } = session;
  try {
    // Where waiting fails, the container itself may still tell.
    await engine.waitContainer(containerId).catch((error: unknown) => {
      session.requireGoingOn();
      if (error instanceof ContainerMissingError) throw error;
      session.ctx.log.debug(describeError(error), { job: session.claim.jobId });
    });
    const details = await engine.inspectContainer(containerId);
    if (details === undefined || details.state === 'removing') return { kind: 'ended', end: undefined };
    const isOver = details.state === 'exited' || details.state === 'dead';
    return isOver ? { kind: 'ended', end: toEnd(details) } : { kind: 'running' };
  } catch (error) {
    session.requireGoingOn();
    if (error instanceof ContainerMissingError) return { kind: 'ended', end: undefined };
    if (error instanceof UnavailableError) return { kind: 'lost', error };
    throw error;
  }
}

function toEnd({ exitCode, oomKilled, error, startedAt, finishedAt }: ContainerDetails): ContainerEnd {
  return {
    exitCode,
    oomKilled,
    error,
    ...(startedAt === undefined ? {} : { startedAt: startedAt.toISOString() }),
    ...(finishedAt === undefined ? {} : { finishedAt: finishedAt.toISOString() }),
  };
}

/** Killed at once and not removed: its log is still to be sent. Resolves when the container has ended. */
async function killWhenCancelled(
  session: JobSession,
  watch: CancelWatch,
  ended: Promise<unknown>,
): Promise<void> {
  const over = new AbortController();
  const end = ended.then(
    () => over.abort(),
    () => over.abort(),
  );
  const cancel = new Promise<void>((resolve) => {
    if (watch.signal.aborted) resolve();
    else watch.signal.addEventListener('abort', () => resolve(), { once: true });
  });
  await Promise.race([cancel, end]);
  if (over.signal.aborted || watch.cancelled === undefined) return;
  // Acted, then recorded: killing it twice is harmless, and it is to be gone soon.
  session.change({ cancelled: watch.cancelled });
  const recorded = session.record({});
  // Told once the container is gone, which is worth more.
  recorded.catch(() => {});
  while (!over.signal.aborted) {
    await session.engine.killContainer(session.containerId, 'SIGKILL').catch((error: unknown) => {
      session.ctx.log.warning(describeError(error), { job: session.claim.jobId });
    });
    await session.ctx.clock.sleep(killAgainMs, over.signal);
  }
  await recorded;
}
