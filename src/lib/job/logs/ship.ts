// The log of a container to the server and to the job's files, from its first byte to its last, whatever breaks on the way.
import { setFlagsFromString } from 'node:v8';
import { ContainerMissingError, EngineError } from '../../docker/errors.ts';
import type { LogPart } from '../../docker/types.ts';
import { describeError, UnavailableError } from '../../errors.ts';
import { createAbsence } from '../engine-away.ts';
import type { JobSession } from '../session.ts';
import { type LogFiles, openLogFiles } from './files.ts';
import { createFramer } from './frames.ts';
import { createSender, type SendChunk } from './send.ts';
import { createUploader, type Uploader } from './uploader.ts';

export type ShipOptions = {
  /** Whether the container has ended: only then is the end of its log one. */
  hasEnded(): boolean;
  /** Resolves then. */
  ended: Promise<unknown>;
};

/** Frames are put together up to so many characters before they are counted. */
const batchLength = 64 * 1024;
/** After the container's end, a server in trouble is waited for so long by one run. */
const patienceMs = 60_000;
/** And an engine that has no log, by all. */
const lastTryMs = 600_000;

/** Resolves with all of it sent, dropped for a reason that was told, or gone with the container. */
export async function shipLog(session: JobSession, options: ShipOptions): Promise<void> {
  if (session.progress.logs.closed) return;
  keepMemoryFlat();
  const { clock } = session.ctx;
  let endedAtMs: number | undefined;
  options.ended.then(
    () => {
      endedAtMs = performance.now();
    },
    () => {},
  );
  const startedAtMs = clock.now().getTime();
  const isLate =
    session.progress.phase === 'ended' && startedAtMs - Date.parse(session.progress.since) > lastTryMs;
  const send = createSender(session, {
    giveUpAtMs: () => (endedAtMs === undefined ? Number.POSITIVE_INFINITY : endedAtMs + patienceMs),
  });
  await shipUntilEnd(session, options, { send, isLate });
  session.change({ logs: { ...session.progress.logs, closed: true } });
}

/**
 * Lines are garbage as soon as they are sent: room for more of it would only make the process larger. Of 1 GB, the second flag
 * saves 20 MiB of 140, and no time is lost.
 */
function keepMemoryFlat(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--optimize-for-size');
}

async function shipUntilEnd(
  session: JobSession,
  options: ShipOptions,
  { send, isLate }: { send: SendChunk; isLate: boolean },
): Promise<void> {
  const { clock, signal } = session.ctx;
  const absence = createAbsence();
  for (;;) {
    const hadEnded = options.hasEnded();
    const end = await shipOnce(session, options, send);
    if (end === 'whole' || end === 'gone') return;
    if (end === 'cut' || hadEnded !== options.hasEnded()) absence.end();
    else if (absence.go() === 'too-long') return await giveUp(session, end, isLate);
    await clock.sleep(250, signal);
    session.requireGoingOn();
  }
}

/** An engine that is there and has said no for so long does not keep the end of the job waiting; any other error is thrown. */
async function giveUp(session: JobSession, error: UnavailableError, isLate: boolean): Promise<void> {
  if (!isLate || error.code !== 'engine') throw error;
  await tellLost(session, error);
}

/** `cut`: the stream ended before the container did. An error: the engine does not answer. */
async function shipOnce(
  session: JobSession,
  options: ShipOptions,
  send: SendChunk,
): Promise<'whole' | 'gone' | 'cut' | UnavailableError> {
  const uploader = createUploader({ progress: () => session.progress.logs, send });
  const files = await openFiles(session);
  const batch = createBatch(uploader);
  const framer = createFramer(batch.add);
  try {
    await session.engine.followLogs(session.containerId, {
      signal: session.ctx.signal,
      onPart: createPartHandler(framer.push, files, batch.flushIfLarge),
    });
    // The stream ends a moment before the engine says that the container has.
    await waitForEnd(session, options);
    if (!options.hasEnded()) return 'cut';
    framer.end();
    await batch.flush();
    await uploader.close();
    return 'whole';
  } catch (error) {
    session.requireGoingOn();
    return await judgeCut(session, error);
  } finally {
    await uploader.abandon();
    await files?.close();
  }
}

async function openFiles(session: JobSession): Promise<LogFiles | undefined> {
  const { logPaths, claim } = session;
  if (logPaths === undefined) return undefined;
  return await openLogFiles(logPaths, async (error) => {
    session.logPaths = undefined;
    await session.tell(
      'warn',
      `the log of job ${claim.jobId} is not kept whole here: ${describeError(error)}`,
    );
  });
}

async function waitForEnd(session: JobSession, { hasEnded, ended }: ShipOptions): Promise<void> {
  if (hasEnded()) return;
  const stop = new AbortController();
  const known = ended.catch(() => {});
  await Promise.race([known, session.ctx.clock.sleep(5000, stop.signal)]);
  stop.abort();
}

function createPartHandler(
  push: (part: LogPart) => void,
  files: LogFiles | undefined,
  flushIfLarge: () => Promise<void> | void,
): (part: LogPart) => Promise<void> | void {
  return (part) => {
    push(part);
    const writing = files?.write(part);
    const sending = flushIfLarge();
    if (writing === undefined) return sending;
    return Promise.all([writing, sending]).then(() => {});
  };
}

async function judgeCut(session: JobSession, error: unknown): Promise<'gone' | UnavailableError> {
  if (error instanceof ContainerMissingError || (error instanceof EngineError && error.status === 404)) {
    await session.tell('warn', `the log of job ${session.claim.jobId} is gone with its container`);
    return 'gone';
  }
  // The engine keeps none: a container of somebody else's may have been made so.
  if (error instanceof EngineError && error.status === 501) {
    await tellLost(session, error);
    return 'gone';
  }
  // What the server's trouble has thrown is the run's end; the engine's is waited out.
  if (error instanceof UnavailableError && error.code !== 'control-plane') return error;
  if (error instanceof EngineError) {
    return new UnavailableError(describeError(error), { cause: error, code: 'engine' });
  }
  throw error;
}

async function tellLost(session: JobSession, error: unknown): Promise<void> {
  await session.tell('warn', `the log of job ${session.claim.jobId} is not whole: ${describeError(error)}`);
}

function createBatch(uploader: Uploader) {
  let text = '';
  // The uploader has copied what it is given by the time it asks for more.
  let scratch = Buffer.alloc(0);
  let isAsked = false;
  let last: Promise<void> = Promise.resolve();
  const flush = (): Promise<void> => {
    last = last.then(async () => {
      const taken = text;
      text = '';
      if (taken === '') return;
      if (taken.length * 3 > scratch.length) scratch = Buffer.allocUnsafeSlow(taken.length * 3);
      await uploader.write(scratch.subarray(0, scratch.write(taken)));
    });
    return last;
  };
  return {
    add: (frame: string): void => {
      text += frame;
      if (isAsked) return;
      isAsked = true;
      // So that a line does not wait here for others: the two seconds of a chunk begin with it. Who writes next is told what
      // has failed.
      setImmediate(() => {
        isAsked = false;
        flush().catch(() => {});
      });
    },
    flush,
    flushIfLarge: (): Promise<void> | void => (text.length >= batchLength ? flush() : undefined),
  };
}
