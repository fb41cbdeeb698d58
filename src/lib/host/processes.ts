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
 * else the number may be another's. False where something is left.
 */
export async function endGroup(
  leader: ProcessName,
  bootNow: string | undefined,
  options: EndOptions,
): Promise<boolean> {
  if (bootNow === undefined || !isAlive(leader, bootNow)) return true;
  const { pid, startTime } = leader;
  // As long as one of the group is there nobody gets its number: whoever has it now as his own is a stranger, and so is that group.
  const isLeft = (): boolean => [startTime, undefined].includes(readStartTime(pid)) && isGroup(pid);
  return await endWhatIsLeft(isLeft, (signal) => signalGroup(pid, signal), options);
}

/**
 * Ends whatever was given this variable, or has it from who was, and is over when all of that is gone: also what is left of a group
 * without its leader, and what has left the group. Whose environment is not ours to read is not among them. False where something is left.
 */
export async function endMarked(variable: string, options: EndOptions): Promise<boolean> {
  const isLeft = (): boolean => findMarked(variable).length > 0;
  if (!isLeft()) return true;
  const signalAll = (signal: NodeJS.Signals): void => {
    for (const pid of findMarked(variable)) signalProcess(pid, signal);
  };
  return await endWhatIsLeft(isLeft, signalAll, options);
}

type EndOptions = {
  /** Between SIGTERM and SIGKILL; 0: SIGKILL at once. */
  graceMs: number;
  clock: Pick<Clock, 'sleep'>;
};

async function endWhatIsLeft(
  isLeft: () => boolean,
  signalAll: (signal: NodeJS.Signals) => unknown,
  { graceMs, clock }: EndOptions,
): Promise<boolean> {
  const isOverWithin = async (limitMs: number, signal?: NodeJS.Signals): Promise<boolean> => {
    const lastMs = performance.now() + limitMs;
    while (isLeft() && performance.now() < lastMs) {
      if (signal !== undefined) signalAll(signal);
      await clock.sleep(lookMs);
    }
    return !isLeft();
  };
  if (graceMs > 0) {
    signalAll('SIGTERM');
    if (await isOverWithin(graceMs)) return true;
  }
  // What is killed may have started another one right before.
  return await isOverWithin(unkillableMs, 'SIGKILL');
}

function findMarked(variable: string): number[] {
  return listPids().filter((pid) => {
    if (pid === process.pid) return false;
    try {
      return `\0${readFileSync(`/proc/${pid}/environ`, 'latin1')}`.includes(`\0${variable}\0`);
    } catch {
      return false;
    }
  });
}

function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended by itself.
  }
}

function listPids(): number[] {
  return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
}

/** Whether any process of the group does something. */
function isGroup(group: number): boolean {
  return listPids().some((pid) => readGroup(pid) === group);
}

/** Another one after each boot. */
export async function readBootId(): Promise<string> {
  return await readFile('/proc/sys/kernel/random/boot_id', 'utf8').then(
    (text) => text.trim(),
    () => 'unknown',
  );
}
