// Deleting a command: from then on there is none, whatever still has to end. Whoever calls lets nobody else change the same
// command meanwhile.
import type { BaseContext } from '../context.ts';
import { describeError } from '../errors.ts';
import { readRecord, removeCommand, writeCancel } from './book.ts';
import { commandKey, isEnded } from './records.ts';
import { endRemains, type SettleContext, underLock } from './settle.ts';
import { lasting, stopCommand } from './start.ts';

type DeleteContext = SettleContext & Pick<BaseContext, 'signal'>;

/** Whoever ran a command that has ended is about to end as well. */
const endMs = 5_000;

/** False where there is none. */
export async function deleteCommand(ctx: DeleteContext, jobId: string): Promise<boolean> {
  const key = commandKey(jobId);
  const record = await readRecord(ctx, key);
  if (record === undefined || (record !== 'damaged' && record.jobId !== jobId)) return false;
  if (record === 'damaged' || isEnded(record.state)) {
    await remove(ctx, key, endMs);
    return true;
  }
  // First the note: whoever runs it finds it, also where we end right here.
  await writeCancel(ctx, key, record);
  if (await remove(ctx, key, 0)) return true;
  const last = await readRecord(ctx, key);
  // One that ended before it could find the note. If it ends after this, it finds it.
  if (last !== undefined && last !== 'damaged' && isEnded(last.state)) await remove(ctx, key, endMs);
  else await stopCommand(lasting(ctx), key).catch((error: unknown) => ctx.log.warning(describeError(error)));
  return true;
}

/** False where somebody has it: as whoever runs it removes it, too, two at once would remove the next one of the same name. */
async function remove(ctx: DeleteContext, key: string, waitMs: number): Promise<boolean> {
  const isRemoved = await underLock(
    ctx,
    key,
    async () => {
      const last = await readRecord(ctx, key);
      if (last !== undefined && last !== 'damaged') endRemains(last);
      await removeCommand(ctx, key);
      return true;
    },
    waitMs,
  );
  return isRemoved === true;
}
