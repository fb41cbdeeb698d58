// Letting go of commands that ended longer ago than they are kept. One file at a time, without a lock for each and without reading
// what is young, so that callers notice nothing of thousands. What runs stays, however old it is.
import { opendir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { BaseContext } from '../context.ts';
import { describeError, systemErrorCode } from '../errors.ts';
import { externalIdPattern } from '../ids.ts';
import { syncDirectory } from '../state/directory.ts';
import { readFileTime, readRecord, removeFiles } from './book.ts';
import { commandsDir, isEnded } from './records.ts';
import { type SettleContext, settleCommand } from './settle.ts';

/** Nobody else changes the same command meanwhile. */
export type Turns = <Value>(key: string, work: () => Promise<Value>) => Promise<Value>;

export type SweepOptions = { retentionMs: number; turns: Turns; signal: AbortSignal };

/** Of files that belong to nothing: whoever makes one is through in moments. */
const orphanMs = 60 * 60_000;

/** Works for so long and rests for so long, so that half of the process is its callers'. */
const restMs = 5;

/** How many commands went. What cannot be removed is told and left. */
export async function sweepCommands(
  ctx: SettleContext & Pick<BaseContext, 'signal'>,
  options: SweepOptions,
): Promise<number> {
  const directory = commandsDir(ctx.paths);
  let count = 0;
  let restedAtMs = performance.now();
  for await (const name of readNames(directory)) {
    if (options.signal.aborted) break;
    try {
      if (await sweepFile(ctx, name, options)) count += 1;
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
  ctx: SettleContext,
  name: string,
  { retentionMs, turns }: SweepOptions,
): Promise<boolean> {
  const now = ctx.clock.now().getTime();
  const writtenAtMs = await readFileTime(ctx, name);
  if (writtenAtMs === undefined) return false;
  const ageMs = now - writtenAtMs;
  const [key = '', kind = ''] = name.split('.', 2);
  if (!externalIdPattern.test(key) || kind !== 'json') {
    if (ageMs > orphanMs && (await isOrphan(ctx, key, name))) {
      await rm(join(commandsDir(ctx.paths), name), { force: true });
    }
    return false;
  }
  if (ageMs <= retentionMs) return false;
  return await turns(key, () => forget(ctx, key, now - retentionMs));
}

async function isOrphan(ctx: SettleContext, key: string, name: string): Promise<boolean> {
  if (!externalIdPattern.test(key)) return name.startsWith('.new-');
  return (await readRecord(ctx, key)) === undefined;
}

/** What was last written so long ago may still run: its record is of its start then. */
async function forget(ctx: SettleContext, key: string, beforeMs: number): Promise<boolean> {
  const record = await readRecord(ctx, key);
  if (record === undefined) return false;
  if (record !== 'damaged') {
    if (!isEnded(record.state)) {
      await settleCommand(ctx, key);
      return false;
    }
    if (!(Date.parse(record.state.endedAt) < beforeMs)) return false;
  }
  await removeFiles(ctx, key);
  return true;
}
