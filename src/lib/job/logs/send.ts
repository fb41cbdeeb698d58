// One chunk to the server, however often it takes: what each answer means, and when it is given up.
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { ControlPlaneError } from '../../control-plane/control-plane.ts';
import { describeError, UnavailableError } from '../../errors.ts';
import { claimBackoff, planBackoffMs } from '../../http/retry.ts';
import type { LogProgress } from '../../jobs/records.ts';
import { isLeftToLater } from '../patience.ts';
import type { JobSession } from '../session.ts';
import { mayHaveArrived } from './arrival.ts';

export type OutgoingChunk = {
  bytes: Buffer;
  fromBytes: number;
  toBytes: number;
  /** The number under which it may have been sent before. */
  resumedNo: number | undefined;
};

export type SendChunk = (chunk: OutgoingChunk) => Promise<void>;

export type SendOptions = {
  /** By `performance.now()`. From then on trouble of the server's is not waited out any longer: a later run goes on. */
  giveUpAtMs(): number;
};

const compress = promisify(gzip);
/** So many answers that a number is taken, and what was sent under it is there. */
const takenAnswers = 3;
/** Of answers that say no more than that something is in the way. */
const maxConflicts = 5;
/** So often is a number left to others, each time twice as many with it: nobody has sent a million chunks. */
const maxLeft = 20;

/** Throws UnavailableError where the server's trouble outlasts our patience; `progress.logs` says where to go on then. */
export function createSender(session: JobSession, options: SendOptions): SendChunk {
  let isStopped = session.progress.logs.closed;
  let isTold = false;
  const tell = async (what: string): Promise<void> => {
    if (isTold) return;
    isTold = true;
    await session.tell('warn', what);
  };
  return async (chunk) => {
    if (isStopped) return;
    const gzipped = await compress(chunk.bytes, { level: 4 });
    const end = await sendUntilAnswered(session, { ...chunk, gzip: gzipped }, options);
    const { logs } = session.progress;
    const { pending: _, ...rest } = logs;
    session.change({ logs: { ...rest, sentBytes: chunk.toBytes } });
    if (end.kind === 'stored') return;
    await tell(end.reason);
    if (end.kind === 'dropped') return;
    isStopped = true;
    session.change({ logs: { ...session.progress.logs, closed: true } });
  };
}

type SendEnd = { kind: 'stored' } | { kind: 'dropped' | 'stopped'; reason: string };

type Sent = OutgoingChunk & { gzip: Uint8Array };

/** What is known of one chunk's number while it is sent. */
type Attempt = {
  chunkNo: number;
  mayBeThere: boolean;
  taken: number;
  /** How often it was another's. */
  left: number;
  conflicts: number;
  failures: number;
};

async function sendUntilAnswered(session: JobSession, chunk: Sent, options: SendOptions): Promise<SendEnd> {
  const attempt: Attempt = {
    chunkNo: chunk.resumedNo ?? session.progress.logs.nextChunk,
    mayBeThere: chunk.resumedNo !== undefined,
    taken: 0,
    left: 0,
    conflicts: 0,
    failures: 0,
  };
  if (!attempt.mayBeThere) await recordPending(session, chunk, attempt.chunkNo);
  for (;;) {
    const error = await tryToSend(session, attempt.chunkNo, chunk.gzip);
    if (error === undefined) return { kind: 'stored' };
    const end = isNumberTaken(error, attempt)
      ? await judgeTaken(session, chunk, attempt)
      : (judgeRefusal(error) ?? (await judgeDelay(session, error, { ...options, attempt })));
    if (end !== undefined) return end;
  }
}

/** By our own chunk, or by another's: then ours is not there, and the number is not ours. */
async function judgeTaken(session: JobSession, chunk: Sent, attempt: Attempt): Promise<SendEnd | undefined> {
  if (attempt.mayBeThere) {
    attempt.taken += 1;
    return attempt.taken >= takenAnswers ? { kind: 'stored' } : undefined;
  }
  attempt.chunkNo += 2 ** attempt.left;
  attempt.left += 1;
  await recordPending(session, chunk, attempt.chunkNo);
  return undefined;
}

/** The server's own trouble is waited out, but not for ever once the container has ended. */
async function judgeDelay(
  session: JobSession,
  error: ControlPlaneError,
  { giveUpAtMs, attempt }: SendOptions & { attempt: Attempt },
): Promise<SendEnd | undefined> {
  const { clock, signal } = session.ctx;
  if (performance.now() >= giveUpAtMs()) {
    if (await isLeftToLater(session, error)) throw error;
    return { kind: 'stopped', reason: describeError(error) };
  }
  attempt.mayBeThere ||= mayHaveArrived(error);
  attempt.failures += 1;
  await clock.sleep(planBackoffMs(claimBackoff, attempt.failures, Math.random()), signal);
  return undefined;
}

async function recordPending(session: JobSession, chunk: Sent, chunkNo: number): Promise<void> {
  const { fromBytes, toBytes } = chunk;
  const logs: LogProgress = {
    ...session.progress.logs,
    nextChunk: chunkNo + 1,
    sentBytes: fromBytes,
    pending: { chunkNo, fromBytes, toBytes },
  };
  await session.record({ logs });
}

async function tryToSend(
  session: JobSession,
  chunkNo: number,
  bytes: Uint8Array,
): Promise<ControlPlaneError | undefined> {
  const { runId, jobId } = session.claim;
  try {
    await session.controlPlane.uploadLogs({ runId, jobId, chunkNo, gzip: bytes });
    return undefined;
  } catch (error) {
    session.requireGoingOn();
    if (error instanceof ControlPlaneError) return error;
    if (error instanceof UnavailableError) {
      return new ControlPlaneError(describeError(error), { cause: error });
    }
    throw error;
  }
}

/**
 * In the database's own name for what makes numbers unique; or as a conflict, which costs a number and no line. A server that says it
 * of every number is in trouble.
 */
function isNumberTaken({ status, answer }: ControlPlaneError, attempt: Attempt): boolean {
  if (attempt.left >= maxLeft) return false;
  if (status === 500) return answer.includes('logs_run_job_chunk_uniq');
  if (status !== 409) return false;
  attempt.conflicts += 1;
  return attempt.conflicts <= maxConflicts;
}

/** What the server will not take is let go, once; where it does not take anything from us, the rest is as well. */
function judgeRefusal(error: ControlPlaneError): SendEnd | undefined {
  if (error.isTransient) return undefined;
  const kind = error.status === 401 || error.status === 403 ? 'stopped' : 'dropped';
  return { kind, reason: describeError(error) };
}
