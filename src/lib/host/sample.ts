// The one collector of this machine's CPU, memory, load and disks: status, statistics and the heartbeats of control planes
// all ask here.
import { constants } from 'node:fs';
import { access, readFile, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { HostSample } from '../cluster/wire.ts';
import { StepError } from '../errors.ts';
import { describeCause } from '../state/file-error.ts';
import type { Clock } from '../time.ts';
import {
  type Cpu,
  type CpuTimes,
  type DiskSpace,
  type Memory,
  parseCpu,
  parseDiskIo,
  parseLoad,
  parseMemory,
  parseNetwork,
  sortDisks,
  type Traffic,
  toHostSample,
} from './parse.ts';

export type HostReading = { cpu: Cpu; memory: Memory; load1: number; sampledAt: Date };

/** A sample, and the counters that the next one may be taken against. */
export type Sampled = { host: HostSample; cpu: CpuTimes };

/** As long as launch-pad's agent looks. */
const windowMs = 250;

const kernelDir = '/proc';

/** What the kernel says at this moment. Throws StepError where it does not (a sandbox that hides it). */
export async function readHost(now: Date, procDir: string = kernelDir): Promise<HostReading> {
  const [cpu, memory, load1] = await Promise.all([
    readCounter(join(procDir, 'stat'), parseCpu),
    readCounter(join(procDir, 'meminfo'), parseMemory),
    readCounter(join(procDir, 'loadavg'), parseLoad),
  ]);
  return { cpu, memory, load1, sampledAt: now };
}

/** Over a quarter of a second from now. */
export async function sampleHost(clock: Clock, procDir?: string): Promise<Sampled> {
  const first = await readHost(clock.now(), procDir);
  await clock.sleep(windowMs);
  return sampleSince(first.cpu, await readHost(clock.now(), procDir));
}

/** Without waiting: over the time since the counters were read, or since boot. */
export function sampleSince(before: CpuTimes | undefined, reading: HostReading): Sampled {
  const { busy, total } = reading.cpu;
  return { host: toHostSample(reading, before ?? { busy: 0, total: 0 }, reading.cpu), cpu: { busy, total } };
}

/** Space for those who are not root, the most constrained path first. Paths that cannot be read are left out. */
export async function readDisks(paths: readonly string[]): Promise<DiskSpace[]> {
  const disks = await Promise.all(paths.map((path) => readDisk(path).catch(() => undefined)));
  return sortDisks(disks.filter((disk) => disk !== undefined));
}

/** Bytes since boot; undefined where the kernel does not tell. */
export async function readTraffic(
  ignored: readonly string[],
  procDir: string = kernelDir,
): Promise<{
  network: Record<string, Traffic> | undefined;
  disk: ReturnType<typeof parseDiskIo> | undefined;
}> {
  const [network, disk] = await Promise.all([
    readCounter(join(procDir, 'net/dev'), (text) => parseNetwork(text, ignored)).catch(() => undefined),
    readCounter(join(procDir, 'diskstats'), parseDiskIo).catch(() => undefined),
  ]);
  return { network, disk };
}

async function readDisk(path: string): Promise<DiskSpace> {
  // What a unit's sandbox hides is mounted over with something small: its space is not the path's.
  await access(path, constants.R_OK);
  const { bsize, blocks, bavail } = await statfs(path);
  return { path, totalBytes: blocks * bsize, freeBytes: bavail * bsize };
}

async function readCounter<T>(path: string, parse: (text: string) => T): Promise<T> {
  try {
    return parse(await readFile(path, 'utf8'));
  } catch (error) {
    throw new StepError(`cannot sample this machine: ${JSON.stringify(path)}: ${describeCause(error)}`, {
      cause: error,
    });
  }
}
