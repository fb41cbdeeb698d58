// Who holds a lock, for people only: the text that the holder writes into the file, and where there is none (a shell's
// `flock`, a holder that was killed) what the kernel knows. No decision is made by it.
import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { systemErrorCode } from '../errors.ts';
import { formatDuration } from '../time.ts';

export type LockHolder = { pid: number; command: string; runId?: string; since?: string };

/** More is not our text. */
const maxTextLength = 4096;

export function renderHolder(holder: LockHolder): string {
  return `${JSON.stringify(holder)}\n`;
}

/** What the file says, if the process it names is still there. */
export function readHolder(path: string): LockHolder | undefined {
  try {
    const text = readFileSync(path, 'utf8');
    if (text.length > maxTextLength) return undefined;
    const raw = JSON.parse(text) as Partial<LockHolder> | null;
    if (typeof raw?.pid !== 'number' || typeof raw.command !== 'string') return undefined;
    return isAlive(raw.pid) ? (raw as LockHolder) : undefined;
  } catch {
    return undefined;
  }
}

/** `pid 123, \`reeve reconcile\`, since 12:01:03 (4s ago)`; times of day are UTC. */
export function describeHolder(holder: LockHolder | undefined, now: Date): string {
  if (holder === undefined) return 'another process';
  const base = `pid ${holder.pid}, \`${holder.command}\``;
  const since = holder.since === undefined ? Number.NaN : Date.parse(holder.since);
  if (Number.isNaN(since)) return base;
  const ageMs = Math.max(0, now.getTime() - since);
  const instant = new Date(since).toISOString().slice(0, 19).replace('T', ' ');
  const shown = ageMs < 24 * 60 * 60_000 ? instant.slice(11) : instant;
  return `${base}, since ${shown} (${formatDuration(ageMs)} ago)`;
}

export type HolderScan = {
  /** By path, for the paths asked for. */
  holders: ReadonlyMap<string, LockHolder>;
  /** False if a process could not be looked into: then an absent path may be held all the same. */
  complete: boolean;
};

/**
 * The processes that hold a flock on these files, by the kernel's own account (/proc/PID/fdinfo). Takes no lock, so it
 * disturbs nobody. /proc/locks would name the flock child that is long gone, and leaves it out inside a container.
 */
export function findHolders(paths: readonly string[]): HolderScan {
  const wanted = new Map(paths.map((path) => [realPath(path), path]));
  const holders = new Map<string, LockHolder>();
  let complete = true;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      for (const fd of readdirSync(`/proc/${pid}/fd`)) {
        const path = wanted.get(readLink(`/proc/${pid}/fd/${fd}`));
        // flock(1) shares its descriptor with the command it runs: the first one is the parent.
        if (path === undefined || holders.has(path) || !holdsFlock(pid, fd)) continue;
        holders.set(path, { pid: Number(pid), command: readProgram(pid) });
      }
    } catch (error) {
      if (!isGone(error)) complete = false;
    }
  }
  return { holders, complete };
}

function holdsFlock(pid: string, fd: string): boolean {
  try {
    return /^lock:.*\bFLOCK\b/m.test(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8'));
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
}

function readLink(path: string): string {
  try {
    return readlinkSync(path);
  } catch (error) {
    if (isGone(error)) return '';
    throw error;
  }
}

/** The program only: its arguments may hold secrets, and this ends up in other runs' logs. */
function readProgram(pid: string): string {
  try {
    const [program = '?'] = readFileSync(join('/proc', pid, 'cmdline'), 'utf8').split('\0');
    return program.replaceAll(/[\p{Cc}`]/gu, '?').slice(0, 80);
  } catch {
    return '?';
  }
}

function isGone(error: unknown): boolean {
  const code = systemErrorCode(error);
  return code === 'ENOENT' || code === 'ESRCH';
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemErrorCode(error) === 'EPERM';
  }
}
