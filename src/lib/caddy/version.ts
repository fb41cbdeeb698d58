// Which Caddy is installed. A running Caddy does not tell its version, and refuses a whole document for one word that it
// does not know.
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { childEnvironment } from '../config/environment.ts';
import { CommandError } from '../errors.ts';

export type CaddyBinary = {
  path: string;
  /** Differs once another program stands there: what was known about the old one is worth nothing then. */
  stamp: string;
};

/** As systemd's units and shells would find it; a small PATH may leave out where Debian puts it. */
export async function findCaddyBinary(
  searchPath: string = childEnvironment()['PATH'] ?? '',
): Promise<CaddyBinary | undefined> {
  const directories = searchPath.split(':').filter((directory) => directory.startsWith('/'));
  for (const directory of new Set([...directories, '/usr/bin'])) {
    const path = join(directory, 'caddy');
    const stamp = await readStamp(path);
    if (stamp !== undefined) return { path, stamp };
  }
  return undefined;
}

/** Undefined if the program does not tell. */
export async function readCaddyVersion(
  path: string,
  { signal }: { signal: AbortSignal },
): Promise<string | undefined> {
  // Loaded here: a tick that finds its binary unchanged runs no program.
  const { runProgram } = await import('../exec/run.ts');
  try {
    const { stdout } = await runProgram([path, 'version'], { timeoutMs: 10_000, signal });
    return parseCaddyVersion(stdout);
  } catch (error) {
    if (error instanceof CommandError && error.code !== 'aborted') return undefined;
    throw error;
  }
}

/** `2.6.2` of Debian's `2.6.2` and of `v2.6.2 h1:...`. */
export function parseCaddyVersion(output: string): string | undefined {
  return /^v?(\d+\.\d+\.\d+[\w.+~-]*)(?=\s|$)/.exec(output.trim())?.[1];
}

/** `stream_close_delay` came with 2.7.0, and with some of its previews only. */
export function knowsCloseDelay(version: string | undefined): boolean {
  const match = /^(\d+)\.(\d+)\.\d+/.exec(version ?? '');
  if (match === null || /^2\.7\.0[-~]/.test(match.input)) return false;
  const [major, minor] = [Number(match[1]), Number(match[2])];
  return major > 2 || (major === 2 && minor >= 7);
}

async function readStamp(path: string): Promise<string | undefined> {
  try {
    await access(path, constants.X_OK);
    const about = await stat(path, { bigint: true });
    return about.isFile() ? `${about.mtimeNs}-${about.size}-${about.ino}` : undefined;
  } catch {
    return undefined;
  }
}
