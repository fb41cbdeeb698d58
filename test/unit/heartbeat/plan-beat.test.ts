import { describe, expect, it } from 'vitest';
import { type BeatEnd, type Beats, isBeatDue, planNextBeat } from '../../../src/lib/heartbeat/plan-beat.ts';
import { heartbeatBackoff } from '../../../src/lib/http/retry.ts';

const start = Date.parse('2026-06-04T03:00:00.000Z');
const at = (seconds: number): Date => new Date(start + seconds * 1000);
const about = (seconds: number) => ({ now: at(seconds), intervalMs: 30_000, backoff: heartbeatBackoff });
const next = (before: Beats | undefined, end: BeatEnd, seconds: number): Beats =>
  planNextBeat(before, end, { ...about(seconds), random: 0.5 });
const waitOf = ({ lastTriedAt, nextAt }: Beats): number => Date.parse(nextAt) - Date.parse(lastTriedAt);

describe('the next heartbeat', () => {
  it('P72: the first one is due at once', () => {
    expect(isBeatDue(undefined, about(0))).toBe(true);
  });

  it('P19: comes an interval after the last, and a timer may be a little early', () => {
    const beats = next(undefined, 'ok', 0);
    expect(waitOf(beats)).toBe(30_000);
    expect([10, 20, 24, 30, 31].map((seconds) => isBeatDue(beats, about(seconds)))).toEqual([
      false,
      false,
      true,
      true,
      true,
    ]);
  });

  it('P73: only a 5xx makes it wait longer, 5 s doubling up to 5 min, and a success ends that', () => {
    const waits: number[] = [];
    let beats: Beats | undefined;
    for (let count = 0; count < 8; count += 1) {
      beats = next(beats, 'server', count);
      waits.push(waitOf(beats) / 1000);
    }
    expect(waits).toEqual([5, 10, 20, 40, 80, 160, 300, 300]);
    expect(next(beats, 'ok', 9)).toMatchObject({ failures: 0, nextAt: at(39).toISOString() });
    expect(waitOf(next(next(undefined, 'server', 0), 'other', 1))).toBe(30_000);
  });

  it('P73: no early one while it is backed off', () => {
    const beats = next(next(undefined, 'server', 0), 'server', 5);
    expect([14, 15].map((seconds) => isBeatDue(beats, about(seconds)))).toEqual([false, true]);
  });

  it('a clock that was set back does not silence it, nor does a record from the future', () => {
    const beats = next(undefined, 'ok', 86_400);
    expect(isBeatDue(beats, about(0))).toBe(true);
    expect(isBeatDue({ ...beats, lastTriedAt: at(-1).toISOString() }, about(0))).toBe(true);
    expect(isBeatDue({ lastTriedAt: 'x', nextAt: 'y', failures: 0 }, about(0))).toBe(true);
  });
});
