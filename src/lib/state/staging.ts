// Names of the private files in which new content is prepared, and the sweep of those that a killed process has left.
import { createHash, randomBytes } from 'node:crypto';
import { readlinkSync } from 'node:fs';
import { lstat, readdir, unlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { systemErrorCode } from '../errors.ts';

/** `.reeve-<host>-<pid>-<random>.tmp`; write-file-atomic appends a number of its own while it writes. */
const stagingPattern = /^\.reeve-([0-9a-f]{8})-(\d+)-[0-9a-f]{12}\.tmp(?:\.\d+)?$/;

/** A staging file of another host or pid namespace says nothing that we could check, so it only goes by age. */
const foreignAgeMs = 24 * 60 * 60_000;

const live = new Set<string>();
const swept = new Set<string>();
let hostTag: string | undefined;

/** A new name, unguessable, so that nobody can have put a file with a loose mode there before us. */
export function newStagingPath(directory: string): string {
  const name = `.reeve-${readHostTag()}-${process.pid}-${randomBytes(6).toString('hex')}.tmp`;
  live.add(name);
  return join(directory, name);
}

/** Removes a staging file that has not been published. Never throws: the next run's sweep has another go. */
export async function discardStaging(path: string): Promise<void> {
  await unlink(path).catch(() => {});
  forgetStaging(path);
}

export function forgetStaging(path: string): void {
  live.delete(path.slice(path.lastIndexOf('/') + 1));
}

/**
 * Removes what killed writers left in this directory, once per process and directory. Only files of our pattern, and
 * only when the process that made them is gone. Best effort: a sweep that fails must not fail the write.
 */
export async function sweepStaging(directory: string): Promise<void> {
  if (swept.has(directory)) return;
  const names = await readdir(directory).catch(() => []);
  for (const name of names) {
    if (await isAbandoned(directory, name)) await unlink(join(directory, name)).catch(() => {});
  }
  swept.add(directory);
}

/** By a process of this host that is still there. */
export async function isBeingWritten(directory: string, name: string): Promise<boolean> {
  const isOurs = stagingPattern.exec(name)?.[1] === readHostTag();
  return isOurs && !(await isAbandoned(directory, name));
}

async function isAbandoned(directory: string, name: string): Promise<boolean> {
  const match = stagingPattern.exec(name);
  if (match === null) return false;
  if (match[1] !== readHostTag()) {
    const age = await lstat(join(directory, name)).catch(() => undefined);
    return age !== undefined && Date.now() - age.mtimeMs > foreignAgeMs;
  }
  const pid = Number(match[2]);
  // A pid is used again soon inside a container: a file with our own pid that we did not make is a predecessor's.
  if (pid === process.pid) return !live.has(name.replace(/\.tmp\.\d+$/, '.tmp'));
  return !isAlive(pid);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemErrorCode(error) !== 'ESRCH';
  }
}

/** Pids mean something only on this host and in this pid namespace; a store's directory may be shared wider. */
function readHostTag(): string {
  hostTag ??= createHash('sha256').update(`${hostname()}\0${readPidNamespace()}`).digest('hex').slice(0, 8);
  return hostTag;
}

function readPidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return '';
  }
}
