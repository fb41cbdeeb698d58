// How many commands there are at once: each is a process of ours beside its own, and a machine that has no memory left deploys nothing.
// A command has a lock while it runs, whose file goes with it; what was just started has none yet.
import { readdir } from 'node:fs/promises';
import { type BookContext, readRecord } from '../commands/book.ts';
import type { OpenOptions } from '../commands/open.ts';
import { isEnded } from '../commands/records.ts';
import { systemErrorCode } from '../errors.ts';
import { ApiError } from '../server/route.ts';
import { fileError } from '../state/file-error.ts';

/** Far more than deploys need, of some 80 MB each. */
const mostCommands = 32;
/** From the start of a process to its lock, on a machine that is busy. */
const startMs = 10_000;
type Started = { atMs: number; isRecorded: boolean };

/** Throws an ApiError with 503 where there are too many. */
export function createRoom(ctx: BookContext): OpenOptions['admit'] {
  const started = new Map<string, Started>();
  return async (key) => {
    const own: Started = { atMs: performance.now(), isRecorded: false };
    // Before anything is waited for: of many at once each counts the others.
    started.set(key, own);
    const recorded = (): void => {
      own.isRecorded = true;
    };
    const count = async (): Promise<number> =>
      new Set([...started.keys(), ...(await listRunning(ctx.paths))]).size;
    if ((await count()) <= mostCommands) return recorded;
    for (const [other, about] of started) {
      if (other !== key && (await isOver(ctx, other, about))) started.delete(other);
    }
    if ((await count()) <= mostCommands) return recorded;
    started.delete(key);
    const words = `too many commands at once: ${mostCommands} are under way`;
    throw new ApiError(503, words, { 'retry-after': '5' });
  };
}

/** It has ended, was deleted, or has its lock by now if it ever gets one. */
async function isOver(ctx: BookContext, key: string, { atMs, isRecorded }: Started): Promise<boolean> {
  if (!isRecorded) return false;
  if (performance.now() - atMs > startMs) return true;
  const record = await readRecord(ctx, key);
  return record === undefined || record === 'damaged' || isEnded(record.state);
}

async function listRunning({ locksDir }: BookContext['paths']): Promise<string[]> {
  try {
    return (await readdir(locksDir)).flatMap((name) => /^command@(.+)\.lock$/.exec(name)?.[1] ?? []);
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw fileError('read', locksDir, error);
  }
}
