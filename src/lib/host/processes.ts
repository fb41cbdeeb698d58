// Which process is which: a number is given to another one some time, and after a reboot all are others. And what ends a group of
// them.
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Clock } from '../time.ts';

/** A number is given to another process some time: `startTime` is in ticks since that boot. */
export type ProcessName = { bootId: string; pid: number; startTime: string };

export function nameProcess(pid: number, bootId: string): ProcessName {
  return { bootId, pid, startTime: readStartTime(pid) ?? '' };
}

/** `bootNow`: undefined where it is not known; then the ticks decide. */
export function isAlive({ bootId, pid, startTime }: ProcessName, bootNow: string | undefined): boolean {
  if (bootNow !== undefined && bootNow !== bootId) return false;
  return startTime !== '' && readStartTime(pid) === startTime;
}

/** In ticks since boot: a number that was given to another process since is told apart. Undefined: it is gone. */
export function readStartTime(pid: number): string | undefined {
  return readStat(pid)?.[19];
}

function readGroup(pid: number): number | undefined {
  const group = readStat(pid)?.[2];
  return group === undefined ? undefined : Number(group);
}

/** The fields from the state on. */
function readStat(pid: number): string[] | undefined {
  if (!Number.isSafeInteger(pid) || pid < 1) return undefined;
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    // A process that was killed and not yet waited for does nothing any more.
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields;
  } catch {
    return undefined;
  }
}

/** False where nothing is left of the group, or it is not ours to end: it has its number as long as one of it is there. */
export function signalGroup(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(-pid, signal);
    return true;
  } catch {
    return false;
  }
}

const lookMs = 20;
/** What SIGKILL does not end hangs in the kernel. */
const unkillableMs = 10_000;

/**
 * Ends what the process leads, and is over when all of that is gone. Only in the boot that it is of, and only while it is there itself:
 * else the number may be another's. False where something is left. `graceMs`: between SIGTERM and SIGKILL; 0: SIGKILL at once.
 */
export async function endGroup(
  leader: ProcessName,
  bootNow: string | undefined,
  { graceMs, clock }: { graceMs: number; clock: Pick<Clock, 'sleep'> },
): Promise<boolean> {
  if (bootNow === undefined || !isAlive(leader, bootNow)) return true;
  const { pid, startTime } = leader;
  // As long as one of the group is there nobody gets its number: whoever has it now as his own is a stranger, and so is that group.
  const isLeft = (): boolean => [startTime, undefined].includes(readStartTime(pid)) && isGroup(pid);
  const isOverWithin = async (limitMs: number): Promise<boolean> => {
    const lastMs = performance.now() + limitMs;
    while (isLeft() && performance.now() < lastMs) await clock.sleep(lookMs);
    return !isLeft();
  };
  if (graceMs > 0) {
    signalGroup(pid, 'SIGTERM');
    if (await isOverWithin(graceMs)) return true;
  }
  signalGroup(pid, 'SIGKILL');
  return await isOverWithin(unkillableMs);
}

/** Whether any process of the group does something. */
function isGroup(group: number): boolean {
  return readdirSync('/proc').some((name) => /^\d+$/.test(name) && readGroup(Number(name)) === group);
}

/** Another one after each boot. */
export async function readBootId(): Promise<string> {
  return await readFile('/proc/sys/kernel/random/boot_id', 'utf8').then(
    (text) => text.trim(),
    () => 'unknown',
  );
}
