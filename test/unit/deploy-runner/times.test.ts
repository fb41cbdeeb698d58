import { describe, expect, it } from 'vitest';
import { findRoomMs, longestTimeoutMs } from '../../../src/lib/deploy-runner/times.ts';

describe('the time that an action may wait', () => {
  it.each<[string, Parameters<typeof findRoomMs>[0], number]>([
    ['a deploy as usual', { timeoutMs: 600_000 }, 200_000],
    ['the longest deploy', { timeoutMs: 770_000 }, 30_000],
    ['a control side that waits for less', { timeoutMs: 470_000, resultTimeoutMs: 600_000 }, 30_000],
    ['a deploy that takes too long', { timeoutMs: 900_000 }, -100_000],
  ])('leaves time for the deploy, its end, its record and its way: %s (D41)', (_, times, roomMs) => {
    expect(findRoomMs(times)).toBe(roomMs);
  });

  it.each<[number | undefined, number]>([
    [undefined, 770_000],
    [600_000, 470_000],
    [86_400_000, 899_000],
    [100_000, -30_000],
  ])('is there for each deploy where the control side gives up after %s ms (D40)', (resultMs, longestMs) => {
    expect(longestTimeoutMs(resultMs)).toBe(longestMs);
  });
});
