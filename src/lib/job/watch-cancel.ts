// Whether somebody wants a job to end: the server, asked every few seconds, or a record that is written beside its own.
import { describeError } from '../errors.ts';
import { readCancel } from '../jobs/book.ts';
import type { JobProgress } from '../jobs/records.ts';
import { limits } from '../ploy/limits.ts';
import type { Log } from '../report/log.ts';
import { watchDirectory } from '../state/watch-directory.ts';
import type { JobSession } from './session.ts';

type Cancelled = NonNullable<JobProgress['cancelled']>;

export type CancelWatch = {
  /** Undefined while nobody wants it. */
  readonly cancelled: Cancelled | undefined;
  /** Aborts as soon as somebody does. */
  readonly signal: AbortSignal;
  /** Asks both, the server only if the last answer is older than `maxAgeMs`. */
  look(maxAgeMs: number): Promise<Cancelled | undefined>;
  stop(): void;
};

export function watchCancel(session: JobSession): CancelWatch {
  const { ctx, place, claim } = session;
  const reader = { ...ctx, log: warnOnce(ctx.log) };
  const found = new AbortController();
  const stopped = new AbortController();
  let cancelled = session.progress.cancelled;
  // Whoever claims a job has it running by then.
  let askedAtMs = Math.min(Date.parse(claim.claimedAt), ctx.clock.now().getTime());
  const settle = (found_: Cancelled): void => {
    if (cancelled !== undefined) return;
    cancelled = found_;
    ctx.log.info(`job is cancelled by the ${found_.by}: ${found_.reason}`, { job: claim.jobId });
    found.abort();
  };
  const readRecord = async (): Promise<void> => {
    const record = await readCancel(reader, place);
    if (record !== undefined) settle({ at: record.at, reason: record.reason, by: record.by });
  };
  const askServer = async (): Promise<void> => {
    askedAtMs = ctx.clock.now().getTime();
    try {
      const status = await session.controlPlane.fetchJobStatus(claim.jobId);
      const at = ctx.clock.now().toISOString();
      if (status.toLowerCase() === 'cancelled')
        settle({ at, reason: 'cancelled on the server', by: 'server' });
    } catch (error) {
      ctx.log.debug(`cannot look for a cancellation: ${describeError(error)}`);
    }
  };
  /** One that cannot be read is nobody's wish: the job goes on. */
  const read = async (): Promise<void> => {
    await readRecord().catch((error: unknown) => reader.log.warning(describeError(error)));
  };
  const watcher = watchDirectory(place.directory, (name) => {
    if (name === 'cancel.json') void read();
  });
  if (cancelled !== undefined) found.abort();
  // One for all rounds: each that is made anew would be kept for as long as those that it is made of.
  const over = AbortSignal.any([stopped.signal, found.signal]);
  const poll = async (): Promise<void> => {
    while (!stopped.signal.aborted && cancelled === undefined) {
      await ctx.clock.sleep(limits.cancelWatchMs, over);
      if (stopped.signal.aborted || cancelled !== undefined) return;
      await read();
      await askServer();
    }
  };
  void poll();
  return {
    get cancelled() {
      return cancelled;
    },
    signal: found.signal,
    look: async (maxAgeMs) => {
      await read();
      if (cancelled === undefined && ctx.clock.now().getTime() - askedAtMs > maxAgeMs) await askServer();
      return cancelled;
    },
    stop: () => {
      stopped.abort();
      watcher.close();
    },
  };
}

/** A record that cannot be read is looked at again and again. */
function warnOnce(log: Log): Log {
  const told = new Set<string>();
  return {
    ...log,
    warning: (message, fields) => {
      if (!told.has(message)) log.warning(message, fields);
      told.add(message);
    },
  };
}
