// How many jobs may be open at once. An open directory is a slot that is taken; while a claim is asked for, its claimer holds
// one more by a reservation in `<run>/claiming`. Both are counted under the lock `slots`, which is held for moments.
import { readFileSync } from 'node:fs';
import { mkdir, readFile, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BaseContext } from '../context.ts';
import { systemErrorCode } from '../errors.ts';
import { withLock } from '../lock/with-locks.ts';
import { fileError } from '../state/file-error.ts';
import { listOpenJobs, openJob } from './book.ts';
import type { JobClaim } from './records.ts';

export type SlotContext = Pick<BaseContext, 'paths' | 'clock' | 'log' | 'runId' | 'command' | 'signal'>;

export type Opening = 'opened' | 'full' | 'known';

/** Whoever holds the lock counts a few names. */
const waitMs = 30_000;

/** Takes a slot for the job of a claim that is about to be asked for; false where all are taken. */
export async function reserveSlot(ctx: SlotContext, concurrency: number): Promise<boolean> {
  return await underSlots(ctx, async () => {
    if ((await countTaken(ctx)) >= concurrency) return false;
    await writeReservation(ctx);
    return true;
  });
}

/** Removing a name is one act, and only makes the count smaller: no lock is needed. */
export async function giveSlotBack({ paths }: Pick<BaseContext, 'paths'>): Promise<void> {
  const path = reservationPath(paths);
  await unlink(path).catch((error: unknown) => {
    if (systemErrorCode(error) !== 'ENOENT') throw fileError('remove', path, error);
  });
}

/** The reservation becomes the job. False where the job is known already; the slot is given back then. */
export async function fillSlot(ctx: SlotContext, claim: JobClaim): Promise<boolean> {
  return await underSlots(ctx, async () => {
    const isNew = await openJob(ctx, claim);
    await giveSlotBack(ctx);
    return isNew;
  });
}

/** For a job that nobody reserved a slot for. What is already running, as after a crash, needs no free one. */
export async function openInSlot(
  ctx: SlotContext,
  claim: JobClaim,
  concurrency = Number.POSITIVE_INFINITY,
): Promise<Opening> {
  return await underSlots(ctx, async () => {
    if (concurrency !== Number.POSITIVE_INFINITY && (await countTaken(ctx)) >= concurrency) return 'full';
    return (await openJob(ctx, claim)) ? 'opened' : 'known';
  });
}

async function underSlots<T>(ctx: SlotContext, work: () => Promise<T>): Promise<T> {
  // A stop does not interrupt what is done in moments: a claim that was answered has to be written down.
  const lasting = { ...ctx, signal: new AbortController().signal };
  return await withLock(lasting, 'slots', work, { waitMs });
}

async function countTaken(ctx: SlotContext): Promise<number> {
  const open = await listOpenJobs(ctx);
  return open.length + ((await isReserved(ctx.paths)) ? 1 : 0);
}

/** By another one that is alive: our own is what we are about to write again. */
async function isReserved(paths: BaseContext['paths']): Promise<boolean> {
  const path = reservationPath(paths);
  try {
    const [pid = '', startedAt = ''] = (await readFile(path, 'utf8')).trim().split(' ');
    return Number(pid) !== process.pid && startedAt !== '' && readStartTime(Number(pid)) === startedAt;
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return false;
    throw fileError('read', path, error);
  }
}

async function writeReservation({ paths }: Pick<BaseContext, 'paths'>): Promise<void> {
  const path = reservationPath(paths);
  try {
    await mkdir(paths.runDir, { recursive: true, mode: 0o750 });
    await writeFile(path, `${process.pid} ${readStartTime(process.pid)}\n`, { mode: 0o600 });
  } catch (error) {
    throw fileError('write', path, error);
  }
}

function reservationPath({ runDir }: BaseContext['paths']): string {
  return join(runDir, 'claiming');
}

/** In ticks since boot: a number that was given to another process since is told apart. Undefined: it is gone. */
function readStartTime(pid: number): string | undefined {
  if (!Number.isSafeInteger(pid) || pid < 1) return undefined;
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    // A process that was killed and not yet waited for holds nothing.
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}
