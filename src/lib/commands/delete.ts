// Deleting a command: from then on there is none, whatever still has to end. Whoever calls lets nobody else change the same
// command meanwhile.
import type { BaseContext } from '../context.ts';
import { describeError } from '../errors.ts';
import { type ReadRecord, readRecord, removeCommand, writeCancel } from './book.ts';
import { type CommandRecord, commandKey, isEnded } from './records.ts';
import { endLedGroup, type SettleContext, stopRunner, underLock } from './settle.ts';
import { lasting, stopCommand } from './start.ts';

type DeleteContext = SettleContext & Pick<BaseContext, 'signal'>;

/** Whoever ran a command that has ended is about to end as well. */
const endMs = 5_000;

/** False where there is none. */
export async function deleteCommand(ctx: DeleteContext, jobId: string): Promise<boolean> {
  const key = commandKey(jobId);
  const record = await readRecord(ctx, key);
  if (record === undefined || (record !== 'damaged' && record.jobId !== jobId)) return false;
  // First the note: from then on there is no such command for anybody who looks, also where we end right here.
  const failure = await note(ctx, key, record);
  const isRemoved = isOver(record) ? await remove(ctx, key, endMs) : await removeUnlessRun(ctx, key);
  if (failure !== undefined && record !== 'damaged') await stopRunner(ctx, record);
  // Also of one that has ended: a unit that is not quite gone would let the next start of its name pass by.
  await stopCommand(lasting(ctx), key).catch((error: unknown) => ctx.log.warning(describeError(error)));
  // A full disk has no room for a note, and gets some by a removal. What has filled it may be this very command: so it was ended first.
  if (!isRemoved && failure !== undefined) throw failure;
  return true;
}

/** Why there is none. */
async function note(ctx: DeleteContext, key: string, record: CommandRecord | 'damaged'): Promise<unknown> {
  if (record === 'damaged') return undefined;
  return await writeCancel(ctx, key, record).then(
    () => undefined,
    (error: unknown) => error,
  );
}

function isOver(record: ReadRecord): boolean {
  return record === 'damaged' || (record !== undefined && isEnded(record.state));
}

async function removeUnlessRun(ctx: DeleteContext, key: string): Promise<boolean> {
  if (await remove(ctx, key, 0)) return true;
  // It may have ended before it could find the note. If it ends after this, it finds it.
  return isOver(await readRecord(ctx, key)) && (await remove(ctx, key, endMs));
}

/** False where somebody has it: as whoever runs it removes it, too, two at once would remove the next one of the same name. */
async function remove(ctx: DeleteContext, key: string, waitMs: number): Promise<boolean> {
  const isRemoved = await underLock(
    ctx,
    key,
    async () => {
      const last = await readRecord(ctx, key);
      if (last !== undefined && last !== 'damaged') await endLedGroup(ctx, last);
      await removeCommand(ctx, key, last);
      return true;
    },
    waitMs,
  );
  return isRemoved === true;
}
