// Letting go of commands that ended longer ago than they are kept, or were deleted. One file at a time, without a lock for each and,
// but for a first look, without reading what is young, so that callers notice nothing of thousands. What runs stays, however old it
// is; what was never begun, as its start was lost, is begun.
import { opendir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { BaseContext } from '../context.ts';
import { describeError, systemErrorCode } from '../errors.ts';
import { externalIdPattern } from '../ids.ts';
import { syncDirectory } from '../state/directory.ts';
import type { Turns } from '../turns.ts';
import { readFileTime, readRecord, removeFiles } from './book.ts';
import { type CommandRecord, cancelPrefix, commandsDir, isEnded } from './records.ts';
import { type SettleContext, settleCommand } from './settle.ts';
import { startLost } from './start.ts';

export type SweepOptions = {
  retentionMs: number;
  turns: Turns;
  signal: AbortSignal;
  /** Young ones are read as well: whoever was here before us may have lost some. */
  isFirst: boolean;
};

/** Of files that belong to nothing: whoever makes one is through in moments. */
const orphanMs = 60 * 60_000;

/** Works for so long and rests for so long, so that half of the process is its callers'. */
const restMs = 5;

type SweepContext = SettleContext & Pick<BaseContext, 'signal'>;

/** How many commands went. What cannot be removed is told and left. */
export async function sweepCommands(ctx: SweepContext, options: SweepOptions): Promise<number> {
  const directory = commandsDir(ctx.paths);
  const begunAt = ctx.clock.now();
  let count = 0;
  let restedAtMs = performance.now();
  for await (const name of readNames(directory)) {
    if (options.signal.aborted) break;
    try {
      if (await sweepFile(ctx, name, { ...options, begunAt })) count += 1;
    } catch (error) {
      ctx.log.warning(`cannot forget ${JSON.stringify(join(directory, name))}: ${describeError(error)}`);
    }
    if (performance.now() - restedAtMs < restMs) continue;
    await ctx.clock.sleep(restMs, options.signal);
    restedAtMs = performance.now();
  }
  if (count > 0) await syncDirectory(directory);
  return count;
}

/** As they are read, since there may be very many. */
async function* readNames(directory: string): AsyncGenerator<string> {
  try {
    for await (const { name } of await opendir(directory)) yield name;
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw error;
  }
}

/** True where a command went. */
async function sweepFile(
  ctx: SweepContext,
  name: string,
  { retentionMs, turns, isFirst, begunAt }: SweepOptions & { begunAt: Date },
): Promise<boolean> {
  const now = ctx.clock.now().getTime();
  const writtenAtMs = await readFileTime(ctx, name);
  if (writtenAtMs === undefined) return false;
  const ageMs = now - writtenAtMs;
  const [key = '', kind = ''] = name.split('.', 2);
  if (!externalIdPattern.test(key) || kind !== 'json') {
    if (kind.startsWith(cancelPrefix)) await turns(key, () => settleCommand(ctx, key));
    if (ageMs > orphanMs && (await isOrphan(ctx, key, kind))) {
      await rm(join(commandsDir(ctx.paths), name), { force: true });
    }
    return false;
  }
  if (ageMs <= retentionMs && !isFirst) return false;
  return await turns(key, () =>
    forget(ctx, key, { before: new Date(now - retentionMs), writtenAt: new Date(writtenAtMs), begunAt }),
  );
}

/** A note about an earlier command of the same name means nothing any more. */
async function isOrphan(ctx: SweepContext, key: string, kind: string): Promise<boolean> {
  if (!externalIdPattern.test(key)) return key === '' && kind.startsWith('new-');
  const record = await readRecord(ctx, key);
  if (record === undefined) return true;
  return (
    record !== 'damaged' && kind.startsWith(cancelPrefix) && kind !== `${cancelPrefix}${record.generation}`
  );
}

type Ages = { before: Date; writtenAt: Date; begunAt: Date };

/** What was last written so long ago may still run: its record is of its start then. */
async function forget(
  ctx: SweepContext,
  key: string,
  { before, writtenAt, begunAt }: Ages,
): Promise<boolean> {
  const record = await readRecord(ctx, key);
  if (record === undefined) return false;
  const endedAt = findEnd(record, writtenAt);
  if (endedAt === undefined) {
    await settleCommand(ctx, key);
    const last = await readRecord(ctx, key);
    if (last !== undefined && last !== 'damaged') await startLost(ctx, key, last, begunAt);
    return false;
  }
  if (!(endedAt.getTime() < before.getTime())) return false;
  await removeFiles(ctx, key, record);
  return true;
}

/** Undefined where it has not ended. Of one that is damaged nobody knows more than when it was written. */
function findEnd(record: CommandRecord | 'damaged', writtenAt: Date): Date | undefined {
  if (record === 'damaged') return writtenAt;
  return isEnded(record.state) ? new Date(record.state.endedAt) : undefined;
}
