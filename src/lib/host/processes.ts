// Which process is which: a number is given to another one some time, and after a reboot all are others. And what ends a group of
// them.
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

/** In ticks since boot: a number that was given to another process since is told apart. Undefined: it is gone. */
export function readStartTime(pid: number): string | undefined {
  if (!Number.isSafeInteger(pid) || pid < 1) return undefined;
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    // A process that was killed and not yet waited for does nothing any more.
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
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

/** Another one after each boot. */
export async function readBootId(): Promise<string> {
  return await readFile('/proc/sys/kernel/random/boot_id', 'utf8').then(
    (text) => text.trim(),
    () => 'unknown',
  );
}
