// When something was, by the wall clock and by the one that nobody sets: the first may be put forward or back meanwhile, the second
// begins anew with each boot.
import { readFile } from 'node:fs/promises';
import type { Clock } from '../time.ts';
import { readBootId } from './processes.ts';

export type Moment = {
  atMs: number;
  /** Undefined where it is not known. */
  boot?: { id: string; uptimeMs: number };
};

export async function readMoment(clock: Pick<Clock, 'now'>): Promise<Moment> {
  const atMs = clock.now().getTime();
  const text = await readFile('/proc/uptime', 'utf8').catch(() => '');
  const uptimeMs = Number.parseFloat(text) * 1000;
  return Number.isNaN(uptimeMs) ? { atMs } : { atMs, boot: { id: await readBootId(), uptimeMs } };
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
