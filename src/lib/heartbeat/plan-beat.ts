// When a control plane is told again: each interval, and later only where the server had trouble of its own. Pure.
import type { BackoffPolicy } from '../http/retry.ts';
import { planBackoffMs } from '../http/retry.ts';

/** What is kept of each control plane. */
export type Beats = {
  lastTriedAt: string;
  nextAt: string;
  /** Of the server's own, one after another. */
  failures: number;
  /** Of the control plane that was told; absent in records of before. */
  origin?: string;
  /** Only where a failed beat fails nothing else, and so stands nowhere else. */
  lastOkAt?: string;
  lastError?: string;
};

/** A timer comes a moment early now and then: a beat left out for that would make the node stale. */
const earlyShare = 0.25;

/** The first one is due at once, and so is one whose record cannot be right, as after a clock that was set back. */
export function isBeatDue(
  beats: Beats | undefined,
  { now, intervalMs, backoff }: { now: Date; intervalMs: number; backoff: BackoffPolicy },
): boolean {
  if (beats === undefined) return true;
  const lastMs = Date.parse(beats.lastTriedAt);
  const leftMs = Date.parse(beats.nextAt) - now.getTime();
  const mostMs = Math.max(intervalMs, backoff.capMs);
  if (!(lastMs <= now.getTime()) || !(leftMs <= mostMs)) return true;
  return leftMs <= (beats.failures === 0 ? intervalMs * earlyShare : 0);
}

/** `ok`; `server`: a 5xx; `other`: any other status, or no answer, which keep the interval. */
export type BeatEnd = 'ok' | 'server' | 'other';

export function planNextBeat(
  before: Beats | undefined,
  end: BeatEnd,
  about: { now: Date; intervalMs: number; backoff: BackoffPolicy; random: number },
): Beats {
  const { now, intervalMs, backoff, random } = about;
  const failures = end === 'server' ? (before?.failures ?? 0) + 1 : 0;
  const waitMs = end === 'server' ? planBackoffMs(backoff, failures, random) : intervalMs;
  return {
    lastTriedAt: now.toISOString(),
    nextAt: new Date(now.getTime() + waitMs).toISOString(),
    failures,
  };
}
