// Deleting a command: from then on there is none, whatever still has to end. Whoever calls lets nobody else change the same
// command meanwhile.
import type { BaseContext } from '../context.ts';
import { describeError } from '../errors.ts';
import { readRecord, removeCommand, writeCancel } from './book.ts';
import { commandKey, isEnded } from './records.ts';
import { endRemains, type SettleContext, underLock } from './settle.ts';
import { stopCommand } from './start.ts';

/** False where there is none. */
export async function deleteCommand(
  ctx: SettleContext & Pick<BaseContext, 'signal'>,
  jobId: string,
): Promise<boolean> {
  const key = commandKey(jobId);
  const record = await readRecord(ctx, key);
  if (record === undefined || (record !== 'damaged' && record.jobId !== jobId)) return false;
  if (record === 'damaged' || isEnded(record.state)) {
    await removeCommand(ctx, key);
    return true;
  }
  // First the note: whoever runs it finds it, also where we end right here.
  await writeCancel(ctx, key, record);
  const isRemoved = await underLock(ctx, key, async () => {
    const last = await readRecord(ctx, key);
    if (last !== undefined && last !== 'damaged') await endRemains(last);
    await removeCommand(ctx, key);
    return true;
  });
  if (isRemoved !== true) {
    await stopCommand(ctx, key).catch((error: unknown) => ctx.log.warning(describeError(error)));
  }
  return true;
}
