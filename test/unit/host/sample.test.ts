import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readDisks, readHost, sampleHost, sampleSince } from '../../../src/lib/host/sample.ts';
import type { Clock } from '../../../src/lib/time.ts';
import { makeTempDir } from '../../support/temp.ts';

const fixtures = join(import.meta.dirname, '../../fixtures/proc');
const now = new Date('2026-06-04T03:00:00Z');

function makeProc(): string {
  const directory = makeTempDir();
  cpSync(fixtures, directory, { recursive: true });
  return directory;
}

describe('the collector', () => {
  it('reads CPU, memory and load at one moment (P70)', async () => {
    expect(await readHost(now, fixtures)).toEqual({
      cpu: { busy: 1700, total: 9900, cores: 2 },
      memory: { totalBytes: 8_000_000 * 1024, availableBytes: 5_000_000 * 1024 },
      load1: 0.52,
      sampledAt: now,
    });
  });

  it('looks twice, 250 ms apart, for the CPU’s share (L152, P67)', async () => {
    const procDir = makeProc();
    const slept: number[] = [];
    const clock: Clock = {
      now: () => now,
      sleep: async (ms) => {
        slept.push(ms);
        writeFileSync(join(procDir, 'stat'), 'cpu  1025 50 500 8025 200 30 20 100 40 10\n');
      },
    };
    expect(await sampleHost(clock, procDir)).toEqual({
      host: {
        cpuPercent: 50,
        memoryUsedMb: 2930,
        memoryTotalMb: 7813,
        sampledAt: '2026-06-04T03:00:00.000Z',
      },
      cpu: { busy: 1725, total: 9950 },
    });
    expect(slept).toEqual([250]);
  });

  it('takes the share since earlier counters, or since boot, without waiting', async () => {
    const reading = await readHost(now, fixtures);
    expect(sampleSince({ busy: 1600, total: 9500 }, reading).host.cpuPercent).toBe(25);
    expect(sampleSince(undefined, reading).host.cpuPercent).toBe(17.2);
  });

  it('says which file of the kernel it cannot read', async () => {
    const procDir = makeProc();
    rmSync(join(procDir, 'meminfo'));
    await expect(readHost(now, procDir)).rejects.toThrow(
      `cannot sample this machine: "${join(procDir, 'meminfo')}": ENOENT: no such file or directory`,
    );
    writeFileSync(join(procDir, 'meminfo'), '');
    await expect(readHost(now, procDir)).rejects.toThrow('it has no MemTotal');
  });

  it('works on this machine', async () => {
    const { cpu, memory, load1 } = await readHost(now);
    expect(cpu.cores).toBeGreaterThan(0);
    expect(cpu.total).toBeGreaterThanOrEqual(cpu.busy);
    expect(memory.availableBytes).toBeGreaterThan(0);
    expect(load1).toBeGreaterThanOrEqual(0);
  });

  it('tells the space below paths and leaves out those that are not there (P69, P74)', async () => {
    const directory = makeTempDir();
    const disks = await readDisks([directory, join(directory, 'missing')]);
    expect(disks.map(({ path }) => path)).toEqual([directory]);
    expect(disks[0]?.totalBytes).toBeGreaterThan(0);
    expect(disks[0]?.freeBytes).toBeLessThanOrEqual(disks[0]?.totalBytes ?? 0);
  });
});
