// One chunk to the server, however often it takes: what each answer means, and when it is given up.
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { ControlPlaneError } from '../../control-plane/control-plane.ts';
import { describeError, UnavailableError } from '../../errors.ts';
import { claimBackoff, planBackoffMs } from '../../http/retry.ts';
import type { LogProgress } from '../../jobs/records.ts';
import type { JobSession } from '../session.ts';

export type OutgoingChunk = {
  bytes: Buffer;
  fromBytes: number;
  toBytes: number;
  /** The number under which it may have been sent before. */
  resumedNo: number | undefined;
};

export type SendChunk = (chunk: OutgoingChunk) => Promise<void>;

export type SendOptions = {
  /** From then on trouble of the server's is not waited out any longer. */
  giveUpAtMs(): number;
  /** What cannot be sent then is let go, instead of being tried by a later run. */
  isLastTry(): boolean;
};

const compress = promisify(gzip);
/** So many answers that a number is taken, and what was sent under it is there. */
const takenAnswers = 3;

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

async function sendUntilAnswered(session: JobSession, chunk: Sent, options: SendOptions): Promise<SendEnd> {
  let chunkNo = chunk.resumedNo ?? session.progress.logs.nextChunk;
  let mayBeThere = chunk.resumedNo !== undefined;
  let taken = 0;
  if (!mayBeThere) await recordPending(session, chunk, chunkNo);
  for (let failures = 1; ; ) {
    const error = await tryToSend(session, chunkNo, chunk.gzip);
    if (error === undefined) return { kind: 'stored' };
    if (isNumberTaken(error)) {
      if (mayBeThere) taken += 1;
      else {
        // By another's chunk: ours is not there, and the number is not ours.
        chunkNo += 1;
        await recordPending(session, chunk, chunkNo);
      }
      if (taken >= takenAnswers) return { kind: 'stored' };
      continue;
    }
    const end = judgeRefusal(error);
    if (end !== undefined) return end;
    mayBeThere = true;
    if (session.ctx.clock.now().getTime() >= options.giveUpAtMs()) {
      if (options.isLastTry()) return { kind: 'stopped', reason: describeError(error) };
      throw error;
    }
    await session.ctx.clock.sleep(planBackoffMs(claimBackoff, failures, Math.random()), session.ctx.signal);
    failures += 1;
  }
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

/** The database's own name for what makes numbers unique. */
function isNumberTaken({ status, answer }: ControlPlaneError): boolean {
  return status === 500 && answer.includes('logs_run_job_chunk_uniq');
}

/** What the server will not take is let go, once; where it does not take anything from us, the rest is as well. */
function judgeRefusal(error: ControlPlaneError): SendEnd | undefined {
  if (error.isTransient) return undefined;
  const kind = error.status === 401 || error.status === 403 ? 'stopped' : 'dropped';
  return { kind, reason: describeError(error) };
}
