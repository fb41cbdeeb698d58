// The clock that effects use, and the words for instants. Pure code takes `now: Date` instead.
import { setTimeout as sleepTimer } from 'node:timers/promises';

export type Clock = {
  now(): Date;
  /** Resolves after `ms` milliseconds, or early (without throwing) when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
};

export const systemClock: Clock = {
  now: () => new Date(),
  sleep: async (ms, signal) => {
    try {
      await sleepTimer(Math.max(0, ms), undefined, signal === undefined ? {} : { signal });
    } catch (error) {
      if (signal?.aborted !== true) throw error;
    }
  },
};

/** An instant as it may stand in a file name: `2026-06-04T03-00-00-000Z`. */
export function fileStamp(instant: Date): string {
  return instant.toISOString().replaceAll(/[:.]/g, '-');
}

/** Milliseconds in the shortest words that people read at a glance: `850ms`, `12.3s`, `4m 5s`, `3h 2m`, `2d 4h`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1).replace(/\.0$/, '')}s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return joinUnits(minutes, 'm', Math.floor((ms % 60_000) / 1000), 's');
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return joinUnits(hours, 'h', minutes % 60, 'm');
  return joinUnits(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

/** Parses `250ms`, `20s`, `5m`, `1h`, `2d` and sums of them (`1m30s`) into milliseconds; undefined if it is no duration. */
export function parseDuration(text: string): number | undefined {
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(text)) return undefined;
  let totalMs = 0;
  for (const [, amount, , unit] of text.matchAll(/(\d+(\.\d+)?)(ms|s|m|h|d)/g)) {
    totalMs += Number(amount) * (unitMs[unit as string] as number);
  }
  return Math.round(totalMs);
}

const unitMs: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function joinUnits(major: number, majorUnit: string, minor: number, minorUnit: string): string {
  return minor === 0 ? `${major}${majorUnit}` : `${major}${majorUnit} ${minor}${minorUnit}`;
}
