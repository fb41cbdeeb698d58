// Listens to one queue for a window: waits until it exists, polls it, and wakes a concern for what comes. What a message says
// does not matter: the tick reads the desired state itself.
import { isMissingQueue } from '../aws/missing-queue.ts';
import { mapBounded } from '../bounded.ts';
import type { BaseContext } from '../context.ts';
import { describeError } from '../errors.ts';
import { type Wakeable, writeWake } from '../publish/wake.ts';
import {
  batchSize,
  deleteMessages,
  findQueue,
  hiddenSeconds,
  type Queue,
  type Queues,
  receiveMessages,
} from './queues.ts';

export type Pace = {
  pollSeconds: number;
  /** After an empty answer that has not waited for messages: not every service, emulator or proxy holds a long poll. */
  emptyMs: number;
  /** Between two looks for a queue that is not there: the first deploy to this node makes it. */
  missingMs: number;
  /** After a failure, give or take a quarter, so that a fleet does not come back all at once. */
  failureMs: number;
};

export type Window = {
  /** By the clock of `performance.now()`. */
  untilMs: number;
  pace: Pace;
};

export type QueueReport = {
  queue: string;
  concern: Wakeable;
  messages: number;
  /** At the window's end. */
  missing: boolean;
  trouble: string | undefined;
};

type Ctx = Pick<BaseContext, 'clock' | 'log' | 'signal' | 'paths'>;

/** Until the window or the signal ends it; what goes wrong is told once, and tried again. */
export async function listenToQueue(
  ctx: Ctx,
  queues: Queues,
  { name, concern, window }: { name: string; concern: Wakeable; window: Window },
): Promise<QueueReport> {
  const { untilMs, pace } = window;
  const report: QueueReport = { queue: name, concern, messages: 0, missing: false, trouble: undefined };
  const ear: Ear = { url: undefined, undeleted: undefined, report, pace };
  for (;;) {
    const secondsLeft = Math.round((untilMs - performance.now()) / 1000);
    if (ctx.signal.aborted) return report;
    if (secondsLeft < 1) return { ...report, trouble: report.trouble ?? ear.undeleted };
    const waitSeconds = Math.min(pace.pollSeconds, secondsLeft);
    const pauseMs = await pollOnce(ctx, queues, ear, waitSeconds).catch((error: unknown) =>
      ctx.signal.aborted ? 0 : judgeFailure(ctx, ear, error),
    );
    if (pauseMs > 0) await ctx.clock.sleep(Math.min(pauseMs, untilMs - performance.now()), ctx.signal);
  }
}

type Ear = {
  /** Where the queue is, once it has been found. */
  url: string | undefined;
  /** Why what came last could not be deleted. */
  undeleted: string | undefined;
  report: QueueReport;
  pace: Pace;
};

/** Answers how long to wait before the next poll, in milliseconds. */
async function pollOnce(ctx: Ctx, queues: Queues, ear: Ear, waitSeconds: number): Promise<number> {
  const { report, pace } = ear;
  const name = report.queue;
  ear.url ??= await findQueue(queues, name);
  if (ear.url === undefined) {
    settle(ctx, report, true);
    return pace.missingMs;
  }
  const queue = { name, url: ear.url };
  const askedAtMs = performance.now();
  const receipts = await receiveMessages(queues, queue, waitSeconds);
  settle(ctx, report, false);
  if (receipts.length === 0) {
    const hasWaited = performance.now() - askedAtMs >= waitSeconds * 1000 * mostOfIt;
    return hasWaited ? 0 : pace.emptyMs;
  }
  const taken = await takeMessages(ctx, queues, { queue, concern: report.concern, receipts });
  report.messages += taken.messages;
  tellUndeleted(ctx, ear, taken.trouble);
  // What is not deleted comes again, from some services at once.
  return taken.trouble === undefined ? 0 : pace.failureMs;
}

/** Of the wait that was asked for: clocks differ. */
const mostOfIt = 0.9;

function judgeFailure(ctx: Ctx, ear: Ear, error: unknown): number {
  if (isMissingQueue(error)) {
    ear.url = undefined;
    settle(ctx, ear.report, true);
  } else {
    tellTrouble(ctx, ear.report, describeError(error));
  }
  return ear.pace.failureMs * (0.75 + Math.random() / 2);
}

/** It has answered. A queue that is not there yet is told once, and no failure. */
function settle({ log }: Ctx, report: QueueReport, missing: boolean): void {
  if (missing && !report.missing)
    log.info(`queue ${report.queue} is not there yet: a deploy to this node makes it`);
  if (report.trouble !== undefined) log.info(`queue ${report.queue} answers again`);
  report.missing = missing;
  report.trouble = undefined;
}

/** An outage is one line, however long it lasts; another trouble is another. */
function tellTrouble({ log }: Ctx, report: QueueReport, trouble: string): void {
  if (report.trouble === trouble) log.debug(trouble);
  else log.warning(trouble);
  report.trouble = trouble;
}

/** The same that failed comes again and again, and fails as before. */
function tellUndeleted({ log }: Ctx, ear: Ear, trouble: string | undefined): void {
  if (trouble !== undefined) {
    if (trouble === ear.undeleted) log.debug(trouble);
    else log.warning(trouble);
  } else if (ear.undeleted !== undefined) {
    log.info(`messages of queue ${ear.report.queue} are deleted again`);
  }
  ear.undeleted = trouble;
}

/** Of one burst, so that all of it is deleted before SQS gives it again; more come with the next poll. */
const mostAtOnce = 500;
const deletionsAtOnce = 5;
/** For all of a burst: what is left then comes again anyway. Well within TimeoutStopSec= of the unit, which a stop has. */
const deletionMs = hiddenSeconds * 1000;

/**
 * Woken before anything is deleted: killed in between, they come again. A burst wakes twice: once for its first messages, and
 * once for all that came while the rest was fetched. Deletions go on after a signal, as what has been received is settled
 * first.
 */
async function takeMessages(
  ctx: Ctx,
  queues: Queues,
  { queue, concern, receipts }: { queue: Queue; concern: Wakeable; receipts: readonly string[] },
): Promise<{ messages: number; trouble: string | undefined }> {
  await writeWake(ctx.paths, concern);
  const all = [...receipts, ...(await drainQueue(ctx, queues, { queue, first: receipts }))];
  if (all.length > receipts.length) await writeWake(ctx.paths, concern);
  ctx.log.info(
    `${all.length === 1 ? '1 message' : `${all.length} messages`} on queue ${queue.name}: woke ${concern}`,
  );
  const batches = Array.from({ length: Math.ceil(all.length / batchSize) }, (_, index) =>
    all.slice(index * batchSize, (index + 1) * batchSize),
  );
  const untilMs = performance.now() + deletionMs;
  const failures = await mapBounded(batches, deletionsAtOnce, async (batch) => {
    const leftMs = untilMs - performance.now();
    return await deleteMessages(queues, queue, { receipts: batch, leftMs }).then(
      () => undefined,
      describeError,
    );
  });
  const [trouble] = failures.filter((failure) => failure !== undefined);
  return { messages: all.length, trouble };
}

/** What else is there, while batches are full. A failure ends it: the next poll tells. */
async function drainQueue(
  { signal }: Ctx,
  queues: Queues,
  { queue, first }: { queue: Queue; first: readonly string[] },
): Promise<string[]> {
  const drained: string[] = [];
  let last = first;
  while (last.length === batchSize && drained.length < mostAtOnce && !signal.aborted) {
    last = await receiveMessages(queues, queue, 0).catch(() => []);
    drained.push(...last);
  }
  return drained;
}
