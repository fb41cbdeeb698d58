import { describe, expect, it } from 'vitest';
import { planLimits } from '../../../../src/lib/job/container/limits.ts';
import { parseSize } from '../../../../src/lib/job/container/size.ts';

describe('a size as people write it', () => {
  it.each([
    ['1073741824', 1_073_741_824],
    ['512m', 512 << 20],
    ['2G', 2 * 2 ** 30],
    ['2GB', 2 * 2 ** 30],
    ['2GiB', 2 * 2 ** 30],
    [' 1.5 g ', 1.5 * 2 ** 30],
    ['64k', 65_536],
    ['1t', 2 ** 40],
    ['7b', 7],
    ['0', undefined],
    ['', undefined],
    ['-1', undefined],
    ['much', undefined],
    ['1 2', undefined],
  ])('%j is %s bytes', (text, bytes) => {
    expect(parseSize(text)).toBe(bytes);
  });
});

describe('what a gate may use', () => {
  it('is nothing in particular where nothing is set', () => {
    expect(planLimits({})).toEqual({});
  });

  it('is read from the variables of the original', () => {
    const limits = planLimits({
      PLOY_BUILDGATE_LIMIT_CPU_MILLIS: '1500',
      PLOY_BUILDGATE_LIMIT_MEMORY_BYTES: '2g',
      PLOY_BUILDGATE_LIMIT_DISK_SPACE: ' 10G ',
    });
    expect(limits).toEqual({ cpus: 1.5, memoryBytes: 2 * 2 ** 30, storageSize: '10G' });
  });

  it.each(['', ' ', '0', '-5', '1.5', 'half'])(
    'is not limited in its CPUs by %j, which is no count',
    (text) => {
      expect(planLimits({ PLOY_BUILDGATE_LIMIT_CPU_MILLIS: text })).toEqual({});
    },
  );
});
