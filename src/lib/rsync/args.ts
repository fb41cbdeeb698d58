// The arguments of rsync for both directions. Neither end is trusted with more than names and contents of plain files: no links, no
// devices, no directories below, nothing that is larger than it may be, no half file under its own name. Pure.
import { asDirectory } from './place.ts';

/** What `listing.ts` reads. */
const entryFormat = '|%i|%n';

/** No byte either way for so long. rsync does not always notice by itself; ssh and our own deadline do. */
const idleSeconds = 30;

/** A name or a list that wants more at once is no list of actions. */
const mostMemory = '64M';

type Transfer = {
  /** Undefined: no ssh. */
  remoteShell?: string;
  from: string;
  to: string;
};

/**
 * What is in the directory `from` into `to`. Contents are compared and not times, so that a file that was cut or has a time in the
 * future is still mended. Every entry is told, changed or not.
 */
export function buildPullArgs({ maxFileBytes, ...transfer }: Transfer & { maxFileBytes: number }): string[] {
  return [
    '--dirs',
    '--chmod=F600,D700',
    `--max-size=${maxFileBytes}`,
    // Where whoever writes there, or another rsync, has not finished.
    '--exclude=.*',
    '--info=skip1,nonreg1',
    '--itemize-changes',
    '--itemize-changes',
    `--out-format=${entryFormat}`,
    ...commonArgs(transfer),
  ];
}

/**
 * The files whose names come on stdin, each with a NUL after it. They are durable on the other side once rsync has ended well.
 * `makesPath`: all directories on the way are made; without it one at most, so that a place that was mistyped is an error.
 */
export function buildPushArgs({
  makesPath = false,
  ...transfer
}: Transfer & { makesPath?: boolean }): string[] {
  return [
    '--files-from=-',
    '--from0',
    '--no-relative',
    '--chmod=F644,D755',
    ...(makesPath ? ['--mkpath'] : []),
    '--fsync',
    ...commonArgs(transfer),
  ];
}

/** What is in the directory `from`, with kind, size and time of each entry. Nothing is taken. */
export function buildListArgs({ from, ...rest }: Omit<Transfer, 'to'>): string[] {
  const list = ['--list-only', '--dirs', '--no-human-readable', '--exclude=.*'];
  return [...list, ...boundArgs(rest), '--', asDirectory(from)];
}

function commonArgs({ from, to, ...rest }: Transfer): string[] {
  return [
    ...['--times', '--omit-dir-times', '--checksum'],
    ...boundArgs(rest),
    ...['--', asDirectory(from), asDirectory(to)],
  ];
}

function boundArgs({ remoteShell }: Pick<Transfer, 'remoteShell'>): string[] {
  return [
    '--no-links',
    '--no-devices',
    '--no-specials',
    `--max-alloc=${mostMemory}`,
    `--timeout=${idleSeconds}`,
    ...(remoteShell === undefined ? [] : ['-e', remoteShell]),
  ];
}
