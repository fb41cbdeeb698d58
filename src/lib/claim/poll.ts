// The claim loop of one window: a slot first, then room and an engine, then the question. What finds nothing makes it wait longer,
// a claim makes it ask again at once. Where all slots are taken it waits for one and asks nobody.
import { ControlPlaneError, UnreadableClaimError } from '../control-plane/control-plane.ts';
import { EngineError } from '../docker/errors.ts';
import { BusyError, describeError, UnavailableError } from '../errors.ts';
import { claimBackoff, planBackoffMs } from '../http/retry.ts';
import { countAnswers, type KeptAnswer, keepAnswer } from '../jobs/answers.ts';
import { clearDoubt, isInDoubt, markDoubt } from '../jobs/doubt.ts';
import { requireRoom, resolveJobRoots } from '../jobs/preflight.ts';
import { giveSlotBack, isSlotLeft, reserveSlot } from '../jobs/slots.ts';
import { jobLabel, runLabel } from '../ploy/names.ts';
import type { Acceptance } from './accept.ts';
import type { ClaimSession } from './session.ts';
import { openSlotWatch, type SlotWatch } from './slot-watch.ts';

export type PollReport = {
  claimed: string[];
  requests: number;
  answers: number;
  /** The last failure, while nothing was answered since. */
  trouble?: string;
};

/** A directory whose changes are not told is looked at so often. */
const lookMs = 2_000;
/** An engine that has answered so lately is not asked again. */
const engineMs = 5_000;

export async function pollForWindow(session: ClaimSession, windowMs: number): Promise<PollReport> {
  const { ctx } = session;
  const report: PollReport = { claimed: [], requests: 0, answers: 0 };
  const endsAtMs = performance.now() + windowMs;
  const leftMs = (): number => endsAtMs - performance.now();
  const preflight = openPreflight(session);
  noteKilledClaim(session);
  const slots = openSlotWatch(ctx);
  try {
    await poll(session, { report, preflight, told: new Set() }, { leftMs, slots });
  } finally {
    slots.close();
  }
  return report;
}

type Window = { leftMs: () => number; slots: SlotWatch };

async function poll(session: ClaimSession, attempt: Try, { leftMs, slots }: Window): Promise<void> {
  const { ctx, runners, random } = session;
  let failures = 0;
  let turns = 0;
  do {
    if (turns > 0) await acceptKept(session, attempt);
    turns += 1;
    if (!(await reserveSlot(ctx, session.jobs.concurrency))) {
      await slots.wait(Math.min(lookMs, Math.max(0, leftMs())));
      await runners.tend();
      continue;
    }
    const isClaimed = await tryOnce(session, attempt);
    failures = isClaimed ? 0 : failures + 1;
    await runners.tend();
    if (isClaimed || leftMs() <= 0) continue;
    const waitMs = Math.min(planBackoffMs(claimBackoff, failures, random()), leftMs());
    await ctx.clock.sleep(waitMs, ctx.signal);
  } while (leftMs() > 0 && !ctx.signal.aborted);
}

type Noted = Pick<Try, 'report' | 'told'>;
type Try = { report: PollReport; preflight: () => Promise<void>; told: Set<string> };

function noteKilledClaim({ ctx }: ClaimSession): void {
  if (!isSlotLeft(ctx)) return;
  markDoubt(ctx.paths);
  const killed = 'the process that claimed before this one was killed while it asked for a job';
  ctx.log.warning(`${killed}: if it was granted, the server waits for that job`);
}

/** Has a slot, and leaves it to the job or gives it back. True where a new job has it. */
async function tryOnce(session: ClaimSession, { report, preflight, told }: Try): Promise<boolean> {
  const { ctx, controlPlane } = session;
  try {
    await preflight();
    if (ctx.signal.aborted) return false;
    report.requests += 1;
    const raw = await controlPlane.claim();
    report.answers += 1;
    delete report.trouble;
    if (raw === undefined) {
      await settleDoubt(session);
      return false;
    }
    const kept = keep(session, raw);
    const { acceptClaim } = await import('./accept.ts');
    const acceptance = await acceptClaim(session, raw, kept);
    note(session, acceptance, { report, told });
    await settleDoubt(session);
    return acceptance.kind === 'accepted';
  } catch (error) {
    if (!isPassing(error)) throw error;
    if (error instanceof ControlPlaneError && error.isTransient) markDoubt(ctx.paths);
    if (error instanceof UnreadableClaimError) {
      const { endUnreadable } = await import('./accept.ts');
      await endUnreadable(session, error);
    }
    report.trouble = describeError(error);
    warnOnce(session, told, report.trouble);
    return false;
  } finally {
    giveSlotBack(ctx);
  }
}

/** Server, engine and disks may be well again at the next turn. What is wrong with us ends the window. */
function isPassing(error: unknown): boolean {
  return error instanceof UnavailableError || error instanceof BusyError || error instanceof EngineError;
}

/** What an earlier turn could not do: it has its slot meanwhile. */
async function acceptKept(session: ClaimSession, { report, told }: Noted): Promise<void> {
  if (countAnswers(session.ctx) === 0) return;
  try {
    const { acceptKeptAnswers } = await import('./accept.ts');
    for (const acceptance of await acceptKeptAnswers(session)) note(session, acceptance, { report, told });
  } catch (error) {
    if (!isPassing(error)) throw error;
    warnOnce(session, told, describeError(error));
  }
}

function note(session: ClaimSession, acceptance: Acceptance, { report, told }: Noted): void {
  if (acceptance.kind === 'accepted') report.claimed.push(acceptance.jobId);
  if (acceptance.kind === 'kept') warnOnce(session, told, acceptance.reason);
}

function warnOnce({ ctx }: ClaimSession, told: Set<string>, message: string): void {
  if (!told.has(message)) ctx.log.warning(message);
  told.add(message);
}

/** Once the server answers: until then nothing could be asked about it. */
async function settleDoubt(session: ClaimSession): Promise<void> {
  const { paths } = session.ctx;
  // A job whose answer is kept is not lost.
  if (!isInDoubt(paths) || countAnswers({ paths }) > 0) return;
  const { endLostJobs } = await import('./lost.ts');
  if (await endLostJobs(session)) clearDoubt(paths);
}

/** Undefined where it cannot be written: then the job cannot be either, and is ended. */
function keep({ ctx }: ClaimSession, payload: unknown): Omit<KeptAnswer, 'payload'> | undefined {
  try {
    return { name: keepAnswer(ctx, payload), claimedAt: ctx.clock.now().toISOString() };
  } catch (error) {
    ctx.log.warning(describeError(error));
    return undefined;
  }
}

/** Throws UnavailableError. The pass at the start has just had an answer of the engine. */
function openPreflight({ ctx, engine }: ClaimSession): () => Promise<void> {
  let answeredAtMs = performance.now();
  return async () => {
    await requireRoom(resolveJobRoots(ctx));
    if (performance.now() - answeredAtMs < engineMs) return;
    await engine.listContainers({ labels: [runLabel, jobLabel] });
    answeredAtMs = performance.now();
  };
}
