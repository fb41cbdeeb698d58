// What a control plane is told of this machine: the one collector's reading as the numbers that it takes. Pure.
import type { HeartbeatBody } from '../ploy/wire.ts';
import type { DiskSpace } from './parse.ts';
import type { HostReading } from './sample.ts';

const maxInt32 = 2 ** 31 - 1;

/** Never negative, never more free than there is: the server refuses that. `disks`: the most constrained one first. */
export function toHeartbeat(
  reading: HostReading,
  disks: readonly DiskSpace[],
  version: string,
): HeartbeatBody {
  const { cpu, memory, load1 } = reading;
  const cpuTotal = Math.min(maxInt32, cpu.cores * 1000);
  const [disk] = disks.filter(({ totalBytes }) => totalBytes > 0);
  return {
    cpu_free_millis: clamp(cpuTotal - Math.round(load1 * 1000), cpuTotal),
    cpu_total_millis: cpuTotal,
    mem_free_bytes: clamp(memory.availableBytes, memory.totalBytes),
    mem_total_bytes: memory.totalBytes,
    disk_free_bytes: clamp(disk?.freeBytes ?? 0, disk?.totalBytes ?? 0),
    disk_total_bytes: disk?.totalBytes ?? 0,
    version,
  };
}

function clamp(value: number, total: number): number {
  return Math.min(total, Math.max(0, value));
}

/** From the best to the worst. */
const states = ['ok', 'unknown', 'degraded', 'error'] as const;

export type NodeState = (typeof states)[number];

/** The worst of them; of none, nothing is known. */
export function worstState(all: readonly NodeState[]): NodeState {
  if (all.length === 0) return 'unknown';
  return states[Math.max(...all.map((state) => states.indexOf(state)))] ?? 'unknown';
}

/** Below this share, a job is likely to fill the disk. */
const tightShare = 0.05;

export function judgeDisk(disks: readonly DiskSpace[]): NodeState {
  const [disk] = disks.filter(({ totalBytes }) => totalBytes > 0);
  if (disk === undefined) return 'unknown';
  return disk.freeBytes / disk.totalBytes < tightShare ? 'degraded' : 'ok';
}
