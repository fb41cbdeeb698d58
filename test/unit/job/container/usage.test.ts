import { describe, expect, it } from 'vitest';
import { mergeUsage, planSampleMs } from '../../../../src/lib/job/container/usage.ts';

describe('when a container is asked what it uses', () => {
  it.each([
    [0, 500],
    [4000, 500],
    [16_000, 2000],
    [80_000, 10_000],
    [86_400_000, 10_000],
    [-5000, 500],
  ])('after %i ms it is asked again in %i ms', (ranMs, ms) => {
    expect(planSampleMs(ranMs)).toBe(ms);
  });
});

describe('what a container was seen to use', () => {
  it('is the first sample, then the most of each', () => {
    const first = mergeUsage(undefined, { cpuNs: 5, memoryBytes: 900 });
    expect(first).toEqual({ cpuNs: 5, memoryBytes: 900 });
    expect(mergeUsage(first, { cpuNs: 8, memoryBytes: 100 })).toEqual({ cpuNs: 8, memoryBytes: 900 });
  });

  it('is kept where a container that ends has nothing to tell', () => {
    const seen = { cpuNs: 8, memoryBytes: 900 };
    expect(mergeUsage(seen, { cpuNs: 0, memoryBytes: 0 })).toEqual(seen);
  });
});
