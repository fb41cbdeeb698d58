import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  cpuPercent,
  parseCpu,
  parseLoad,
  parseMemory,
  sortDisks,
  toHostSample,
} from '../../../src/lib/host/parse.ts';

const fixture = (name: string): string =>
  readFileSync(join(import.meta.dirname, '../../fixtures/proc', name), 'utf8');

describe('the counters of the CPUs', () => {
  it('are busy and total ticks of all of them; a guest is not counted twice (P67, L152)', () => {
    expect(parseCpu(fixture('stat'))).toEqual({ busy: 1700, total: 9900, cores: 2 });
  });

  it.each([
    ['1 2 3 4', { busy: 6, total: 10, cores: 0 }],
    ['1 2 3 4 5', { busy: 6, total: 15, cores: 0 }],
  ])('are read from the shorter lines of old kernels: %s', (fields, expected) => {
    expect(parseCpu(`cpu  ${fields}\n`)).toEqual(expected);
  });

  it.each(['', 'cpu  1 2 3\n', 'cpu  1 2 x 4\n', 'cpu0 1 2 3 4\n'])('are refused in %j', (text) => {
    expect(() => parseCpu(text)).toThrow('it has no line for all CPUs');
  });
});

describe('the busy share between two readings', () => {
  it.each([
    ['a third', { busy: 0, total: 0 }, { busy: 1, total: 3 }, 33.3],
    ['nothing', { busy: 5, total: 10 }, { busy: 5, total: 20 }, 0],
    ['everything', { busy: 5, total: 10 }, { busy: 15, total: 20 }, 100],
    ['no time between', { busy: 5, total: 10 }, { busy: 5, total: 10 }, 0],
    ['more busy than total ticks', { busy: 5, total: 10 }, { busy: 30, total: 20 }, 100],
    ['a boot between', { busy: 500, total: 1000 }, { busy: 25, total: 100 }, 25],
    ['a busy count that went back', { busy: 500, total: 1000 }, { busy: 499, total: 1996 }, 25],
  ])('is a percentage with one decimal, 0 to 100: %s (L112)', (_, before, after, percent) => {
    expect(cpuPercent(before, after)).toBe(percent);
  });
});

describe('memory', () => {
  it('is what there is and what is available (P68)', () => {
    expect(parseMemory(fixture('meminfo'))).toEqual({
      totalBytes: 8_000_000 * 1024,
      availableBytes: 5_000_000 * 1024,
    });
  });

  it('is reckoned where an old kernel does not tell what is available', () => {
    const text = fixture('meminfo').replace(/^MemAvailable.*\n/m, '');
    expect(parseMemory(text).availableBytes).toBe(4_600_000 * 1024);
    expect(parseMemory('MemTotal: 8 kB\n')).toEqual({ totalBytes: 8192, availableBytes: 0 });
  });

  it('is never more available than there is (P71)', () => {
    const text = 'MemTotal: 8 kB\nMemAvailable: 9 kB\n';
    expect(parseMemory(text)).toEqual({ totalBytes: 8192, availableBytes: 8192 });
  });

  it.each(['', 'MemTotal: 0 kB\n', 'MemTotal: many kB\n'])('is refused in %j', (text) => {
    expect(() => parseMemory(text)).toThrow('it has no MemTotal');
  });
});

describe('the load', () => {
  it('is the last minute’s', () => {
    expect(parseLoad(fixture('loadavg'))).toBe(0.52);
    expect(parseLoad('3 2 1 1/2 3\n')).toBe(3);
  });

  it.each(['', 'x 1 2', '-1.0 2 3'])('is refused in %j', (text) => {
    expect(() => parseLoad(text)).toThrow('it has no load average');
  });
});

describe('the sample in status.json', () => {
  it('has CPU, used and total memory in MB, and when (L112)', () => {
    const sampledAt = new Date('2026-06-04T03:00:00Z');
    const reading = { memory: parseMemory(fixture('meminfo')), sampledAt };
    expect(toHostSample(reading, { busy: 0, total: 0 }, parseCpu(fixture('stat')))).toEqual({
      cpuPercent: 17.2,
      memoryUsedMb: 2930,
      memoryTotalMb: 7813,
      sampledAt: '2026-06-04T03:00:00.000Z',
    });
  });
});

describe('disks', () => {
  it('come with the most constrained first, clamped (P69, P71, P74)', () => {
    expect(
      sortDisks([
        { path: '/', totalBytes: 100, freeBytes: 50 },
        { path: '/tmp', totalBytes: 10, freeBytes: 20 },
        { path: '/odd', totalBytes: -1, freeBytes: -5 },
        { path: '/var', totalBytes: 100, freeBytes: -5 },
      ]),
    ).toEqual([
      { path: '/odd', totalBytes: 0, freeBytes: 0 },
      { path: '/var', totalBytes: 100, freeBytes: 0 },
      { path: '/tmp', totalBytes: 10, freeBytes: 10 },
      { path: '/', totalBytes: 100, freeBytes: 50 },
    ]);
  });
});
