// How many jobs may be open at once. An open directory is a slot that is taken; while a claim is asked for, its claimer holds
// one more by a reservation in `<run>/claiming`. Jobs are made under the lock `slots`, which is held for moments. The claimer needs
// it for no reservation: it writes its name and then looks for others, and whoever opens a job does the same with `<run>/opening`,
// so that at least one of two sees the other.
import { existsSync, mkdirSync, readFileSync, renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BaseContext } from '../context.ts';
import { systemErrorCode } from '../errors.ts';
import { readStartTime } from '../host/processes.ts';
import { withLock } from '../lock/with-locks.ts';
import { fileError } from '../state/file-error.ts';
import { countAnswers, dropAnswer } from './answers.ts';
import { listOpenJobs, openJob } from './book.ts';
import type { JobClaim } from './records.ts';

export type SlotContext = Pick<BaseContext, 'paths' | 'clock' | 'log' | 'runId' | 'command' | 'signal'>;

export type Opening = 'opened' | 'full' | 'known';

/** Whoever holds the lock counts a few names. */
const waitMs = 30_000;

/** Takes a slot for the job of a claim that is about to be asked for; false where all are taken. */
export async function reserveSlot(ctx: SlotContext, concurrency: number): Promise<boolean> {
  if (isNamed(ctx.paths, 'claiming')) return false;
  writeName(ctx.paths, 'claiming');
  // Before the jobs are counted: who has opened one by then is seen there.
  const others = isNamed(ctx.paths, 'opening') ? 1 : 0;
  if ((await countKept(ctx)) + others < concurrency) return true;
  giveSlotBack(ctx);
  return false;
}

/** By a claimer that was killed while it asked: its answer may have been a job. */
export function isSlotLeft({ paths }: Pick<BaseContext, 'paths'>): boolean {
  return existsSync(namePath(paths, 'claiming')) && !isNamed(paths, 'claiming');
}

/** Removing a name is one act, and only makes the count smaller. */
export function giveSlotBack({ paths }: Pick<BaseContext, 'paths'>): void {
  removeName(paths, 'claiming');
}

/** The reservation becomes the job, and so does its answer. False where the job is known already; the slot is given back then. */
export async function fillSlot(ctx: SlotContext, claim: JobClaim, answer?: string): Promise<boolean> {
  // A stop does not interrupt what is done in moments: a claim that was answered has to be written down.
  const lasting = { ...ctx, signal: new AbortController().signal };
  return await underSlots(lasting, async () => {
    const isNew = await openJob(ctx, claim);
    if (isNew && answer !== undefined) dropAnswer(ctx, answer);
    giveSlotBack(ctx);
    return isNew;
  });
}

/** For a job that nobody reserved a slot for; until the signal ends the wait for the lock. What is already running, as after a crash, needs no free one. */
export async function openInSlot(
  ctx: SlotContext,
  claim: JobClaim,
  concurrency = Number.POSITIVE_INFINITY,
): Promise<Opening> {
  const open = async (): Promise<Opening> => ((await openJob(ctx, claim)) ? 'opened' : 'known');
  return await underSlots(ctx, async () => {
    if (concurrency === Number.POSITIVE_INFINITY) return await open();
    writeName(ctx.paths, 'opening');
    try {
      const others = isNamed(ctx.paths, 'claiming') ? 1 : 0;
      return (await countKept(ctx)) + others >= concurrency ? 'full' : await open();
    } finally {
      removeName(ctx.paths, 'opening');
    }
  });
}

async function underSlots<T>(ctx: SlotContext, work: () => Promise<T>): Promise<T> {
  return await withLock(ctx, 'slots', work, { waitMs });
}

/** Jobs, and answers of which none has been made yet. */
async function countKept(ctx: SlotContext): Promise<number> {
  const open = await listOpenJobs(ctx);
  return open.length + countAnswers(ctx);
}

type Name = 'claiming' | 'opening';

/** By another one that is alive. */
function isNamed(paths: BaseContext['paths'], name: Name): boolean {
  const path = namePath(paths, name);
  try {
    const [pid = '', startedAt = ''] = readFileSync(path, 'utf8').trim().split(' ');
    return Number(pid) !== process.pid && startedAt !== '' && readStartTime(Number(pid)) === startedAt;
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return false;
    throw fileError('read', path, error);
  }
}

/** Whole at once: nobody may take half a name for none. */
function writeName(paths: BaseContext['paths'], name: Name): void {
  const path = namePath(paths, name);
  const staged = `${path}.${process.pid}`;
  try {
    mkdirSync(paths.runDir, { recursive: true, mode: 0o750 });
    writeFileSync(staged, `${process.pid} ${readStartTime(process.pid)}\n`, { mode: 0o600 });
    renameSync(staged, path);
  } catch (error) {
    throw fileError('write', path, error);
  }
}

function removeName(paths: BaseContext['paths'], name: Name): void {
  const path = namePath(paths, name);
  try {
    unlinkSync(path);
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw fileError('remove', path, error);
  }
}

function namePath({ runDir }: BaseContext['paths'], name: Name): string {
  return join(runDir, name);
}
