// The kernel's text about this machine as numbers, and what two readings amount to. Pure.
import type { HostSample } from '../cluster/wire.ts';

/** Ticks since boot over all CPUs: a percentage comes from two of these. */
export type CpuTimes = { busy: number; total: number };

export type Cpu = CpuTimes & { cores: number };
export type Memory = { totalBytes: number; availableBytes: number };
export type DiskSpace = { path: string; totalBytes: number; freeBytes: number };

const mebibyte = 1024 * 1024;

/** /proc/stat. Throws where it has no line for all CPUs. */
export function parseCpu(text: string): Cpu {
  const fields = /^cpu +(.*)$/m.exec(text)?.[1]?.trim().split(/ +/).map(Number) ?? [];
  // user nice system idle iowait irq softirq steal: what a guest used is part of user and nice already.
  const counted = fields.slice(0, 8);
  if (counted.length < 4 || counted.some((field) => !Number.isFinite(field))) {
    throw new TypeError('it has no line for all CPUs');
  }
  const total = counted.reduce((sum, field) => sum + field, 0);
  const [, , , idle = 0, ioWait = 0] = counted;
  return { busy: total - idle - ioWait, total, cores: text.match(/^cpu\d+ /gm)?.length ?? 0 };
}

/** Busy share between two readings, 0 to 100 with one decimal. Counters that went back (a boot between) count from zero. */
export function cpuPercent(before: CpuTimes, after: CpuTimes): number {
  const start = after.total < before.total || after.busy < before.busy ? { busy: 0, total: 0 } : before;
  const ticks = after.total - start.total;
  if (ticks <= 0) return 0;
  const percent = ((after.busy - start.busy) / ticks) * 100;
  return Math.round(Math.min(100, Math.max(0, percent)) * 10) / 10;
}

/** /proc/meminfo. Kernels before 3.14 do not tell what is available: then what is free or could be. */
export function parseMemory(text: string): Memory {
  const read = (name: string): number | undefined => {
    const kibibytes = new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(text)?.[1];
    return kibibytes === undefined ? undefined : Number(kibibytes) * 1024;
  };
  const totalBytes = read('MemTotal');
  if (totalBytes === undefined || totalBytes === 0) throw new TypeError('it has no MemTotal');
  const reclaimable = (read('MemFree') ?? 0) + (read('Buffers') ?? 0) + (read('Cached') ?? 0);
  const availableBytes = Math.min(totalBytes, read('MemAvailable') ?? reclaimable);
  return { totalBytes, availableBytes };
}

/** The load average of the last minute, from /proc/loadavg. */
export function parseLoad(text: string): number {
  const load = Number(/^\d+(\.\d+)?(?= )/.exec(text)?.[0]);
  if (Number.isNaN(load)) throw new TypeError('it has no load average');
  return load;
}

export type Traffic = { rxBytes: number; txBytes: number };

/** /proc/net/dev: bytes since boot of each interface but loopbacks and those that a pattern with `*` and `?` names. */
export function parseNetwork(text: string, ignored: readonly string[]): Record<string, Traffic> {
  const patterns = ignored.map(toPattern);
  const traffic: Record<string, Traffic> = {};
  for (const [, name = '', counters = ''] of text.matchAll(/^ *([^\s:]+): *(.*)$/gm)) {
    if (name.startsWith('lo') || patterns.some((pattern) => pattern.test(name))) continue;
    const fields = counters.trim().split(/ +/).map(Number);
    traffic[name] = { rxBytes: fields[0] ?? 0, txBytes: fields[8] ?? 0 };
  }
  return traffic;
}

function toPattern(glob: string): RegExp {
  const escaped = glob.replaceAll(/[.+^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`^${escaped.replaceAll('*', '.*').replaceAll('?', '.')}$`);
}

/** /proc/diskstats: bytes since boot over whole disks; the kernel counts sectors of 512 bytes whatever the disk's own. */
export function parseDiskIo(text: string): { readBytes: number; writtenBytes: number } {
  const sum = { readBytes: 0, writtenBytes: 0 };
  for (const line of text.split('\n')) {
    const [, , name = '', , , read = '0', , , , written = '0'] = line.trim().split(/ +/);
    if (!/^([svh]d[a-z]+|xvd[a-z]+|nvme\d+n\d+|mmcblk\d+)$/.test(name)) continue;
    sum.readBytes += Number(read) * 512;
    sum.writtenBytes += Number(written) * 512;
  }
  return sum;
}

/** What launch-pad's documents carry of a reading. */
export function toHostSample(
  reading: { memory: Memory; sampledAt: Date },
  before: CpuTimes,
  after: CpuTimes,
): HostSample {
  const { totalBytes, availableBytes } = reading.memory;
  return {
    cpuPercent: cpuPercent(before, after),
    memoryUsedMb: Math.round((totalBytes - availableBytes) / mebibyte),
    memoryTotalMb: Math.round(totalBytes / mebibyte),
    sampledAt: reading.sampledAt.toISOString(),
  };
}

/** The one with the least free space first. Negative or contradictory numbers of a file system are clamped. */
export function sortDisks(disks: readonly DiskSpace[]): DiskSpace[] {
  const clamp = (disk: DiskSpace): DiskSpace => {
    const totalBytes = Math.max(0, disk.totalBytes);
    return { ...disk, totalBytes, freeBytes: Math.min(totalBytes, Math.max(0, disk.freeBytes)) };
  };
  return disks.map(clamp).sort((left, right) => left.freeBytes - right.freeBytes);
}
