import { describe, expect, it } from 'vitest';
import {
  type BackoffPolicy,
  bootstrapBackoff,
  claimBackoff,
  completionBackoff,
  heartbeatBackoff,
  planBackoffMs,
} from '../../../src/lib/http/retry.ts';

const middles = (policy: BackoffPolicy, count: number): number[] =>
  Array.from({ length: count }, (_, index) => planBackoffMs(policy, index + 1, 0.5));

describe('the wait before another attempt', () => {
  it.each([
    ['P55 claims', claimBackoff, [250, 500, 1000, 2000, 4000, 5000, 5000]],
    ['P61 completions', completionBackoff, [100, 200, 400, 400]],
    ['P73 heartbeats', heartbeatBackoff, [5000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]],
    ['P79 the bootstrap', bootstrapBackoff, [1000, 2000, 4000, 8000, 16_000]],
  ])('%s: doubles up to its cap', (_, policy, waits) => {
    expect(middles(policy, waits.length)).toEqual(waits);
  });

  it('is half as long or half as much again by chance, and never above the cap', () => {
    expect(planBackoffMs(claimBackoff, 1, 0)).toBe(125);
    expect(planBackoffMs(claimBackoff, 1, 0.999_999)).toBe(375);
    expect(planBackoffMs(claimBackoff, 9, 0.999_999)).toBe(5000);
    expect(planBackoffMs(claimBackoff, 9, 0)).toBe(2500);
  });

  it('is a number after any count of failures', () => {
    for (const failures of [0, 1, 1000, Number.MAX_SAFE_INTEGER]) {
      expect(planBackoffMs(heartbeatBackoff, failures, 0.5)).toBeLessThanOrEqual(300_000);
    }
  });
});
