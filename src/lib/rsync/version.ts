// Which rsync is installed here: an older one does not know what is asked of it, or believes too much of the other side.
import { CommandError } from '../errors.ts';

/** Knows `--fsync`, with which results are sent. */
export const oldestRsync = '3.2.4';

/** Lets no sender write outside of the directory that was asked for (CVE-2024-12087, 12088). */
export const safeRsync = '3.4.0';

/** Undefined where it does not tell. */
export async function readRsyncVersion({ signal }: { signal: AbortSignal }): Promise<string | undefined> {
  const { runProgram } = await import('../exec/run.ts');
  try {
    const { stdout } = await runProgram(['rsync', '--version'], { timeoutMs: 10_000, signal });
    return parseRsyncVersion(stdout);
  } catch (error) {
    if (error instanceof CommandError && error.code !== 'aborted') return undefined;
    throw error;
  }
}

/** `3.2.7` of `rsync  version 3.2.7  protocol version 31`, and of `v3.2.7`, `3.2.7pre1` and the like. */
export function parseRsyncVersion(output: string): string | undefined {
  return /^rsync +version +v?(\d+\.\d+\.\d+)/.exec(output)?.[1];
}

/** Assumes numbers with dots between them. */
export function isOlderVersion(version: string, than: string): boolean {
  const [own, other] = [version, than].map((text) => text.split('.').map(Number));
  const first = other?.findIndex((part, index) => part !== (own?.[index] ?? 0)) ?? -1;
  return first >= 0 && (own?.[first] ?? 0) < (other?.[first] ?? 0);
}
