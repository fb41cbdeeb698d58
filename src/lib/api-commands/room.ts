// How many commands there are at once: each is a process of ours beside its own, and a machine that has no memory left deploys nothing.
// A command has a lock while it runs, whose file goes with it; what was just started has none yet. A kill leaves the file behind.
import { readdir } from 'node:fs/promises';
import { mapBounded } from '../bounded.ts';
import { type BookContext, readRecord } from '../commands/book.ts';
import type { OpenOptions } from '../commands/open.ts';
import { isEnded } from '../commands/records.ts';
import { findLoss } from '../commands/settle.ts';
import { systemErrorCode } from '../errors.ts';
import { findBootId } from '../host/boot.ts';
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
    try {
      await requireRoom(ctx, started, key);
    } catch (error) {
      started.delete(key);
      throw error;
    }
    return () => {
      own.isRecorded = true;
    };
  };
}

async function requireRoom(ctx: BookContext, started: Map<string, Started>, key: string): Promise<void> {
  const count = (locked: readonly string[]): number => new Set([...started.keys(), ...locked]).size;
  if (count(await listLocked(ctx.paths)) <= mostCommands) return;
  for (const [other, about] of started) {
    if (other !== key && (await isOver(ctx, other, about))) started.delete(other);
  }
  if (count(await listRunning(ctx)) <= mostCommands) return;
  const words = `too many commands at once: ${mostCommands} are under way`;
  throw new ApiError(503, words, { 'retry-after': '5' });
}

/** It has ended, was deleted, or has its lock by now if it ever gets one. */
async function isOver(ctx: BookContext, key: string, { atMs, isRecorded }: Started): Promise<boolean> {
  if (!isRecorded) return false;
  if (performance.now() - atMs > startMs) return true;
  const record = await readRecord(ctx, key);
  return record === undefined || record === 'damaged' || isEnded(record.state);
}

/** At once: each is one small file. */
const atOnce = 8;

/** Without those whose lock is only a file: they have ended, were removed, or lost their process. */
async function listRunning(ctx: BookContext): Promise<string[]> {
  const bootId = await findBootId(ctx.paths);
  const running: string[] = [];
  await mapBounded(await listLocked(ctx.paths), atOnce, async (key) => {
    const record = await readRecord(ctx, key);
    if (record === undefined || record === 'damaged' || isEnded(record.state)) return;
    if (findLoss(record, bootId) === undefined) running.push(key);
  });
  return running;
}

async function listLocked({ locksDir }: BookContext['paths']): Promise<string[]> {
  try {
    return (await readdir(locksDir)).flatMap((name) => /^command@(.+)\.lock$/.exec(name)?.[1] ?? []);
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw fileError('read', locksDir, error);
  }
}
