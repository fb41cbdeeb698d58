// When something was, by the wall clock and by the one that nobody sets: the first may be put forward or back meanwhile, the second
// begins anew with each boot.
import { readFile } from 'node:fs/promises';
import type { Paths } from '../config/paths.ts';
import type { Clock } from '../time.ts';
import { requireBootId } from './boot.ts';
import { readStartTime } from './processes.ts';

export type Moment = {
  atMs: number;
  /** Undefined where it is not known. */
  boot?: { id: string; uptimeMs: number };
};

/** The boot is the same one in a sandbox and outside of it. `findBootId` for `readBoot` leaves no mark of it. */
export async function readMoment(
  { clock, paths }: { clock: Pick<Clock, 'now'>; paths: Pick<Paths, 'runDir'> },
  readBoot: (paths: Pick<Paths, 'runDir'>) => Promise<string | undefined> = requireBootId,
): Promise<Moment> {
  const atMs = clock.now().getTime();
  const uptimeMs = await readUptime();
  const id = await readBoot(paths).catch(() => undefined);
  return id === undefined || Number.isNaN(uptimeMs) ? { atMs } : { atMs, boot: { id, uptimeMs } };
}

const tickMs = 10;

/** Since the first process: in a container the kernel is up for longer. */
async function readUptime(): Promise<number> {
  const text = await readFile('/proc/uptime', 'utf8').catch(() => '');
  return Math.max(0, Number.parseFloat(text) * 1000 - Number(readStartTime(1) ?? 0) * tickMs);
}

/** Within one boot whatever the wall clock was set to, across boots by it; never below 0. Pure. */
export function elapsedMs(since: Moment, now: Moment): number {
  if (since.boot !== undefined && since.boot.id === now.boot?.id) {
    const elapsed = now.boot.uptimeMs - since.boot.uptimeMs;
    // Below 0 it has begun anew in a container, whose boot is the machine's.
    if (elapsed >= 0) return elapsed;
  }
  return Math.max(0, now.atMs - since.atMs);
}

/**
 * How long of the time since then this machine was up for sure: across boots that since this one, for it was down for a time that
 * only the wall clock tells. Pure.
 */
export function upSinceMs(since: Moment, now: Moment): number {
  if (since.boot === undefined || now.boot === undefined) return elapsedMs(since, now);
  const isThisBoot = since.boot.id === now.boot.id && since.boot.uptimeMs <= now.boot.uptimeMs;
  return isThisBoot ? elapsedMs(since, now) : now.boot.uptimeMs;
}
