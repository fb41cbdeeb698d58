// The bundle of a run's artifacts: when it is wanted, and how it is packed. What is in it depends on the files alone, not on when
// or in which order they came; links that leave stay out, as whoever unpacks it would follow them.
import type { Dirent } from 'node:fs';
import { mkdir, readdir, readlink, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StepError } from '../../errors.ts';
import { runProgram } from '../../exec/run.ts';
import { limits } from '../../ploy/limits.ts';
import type { JobType, TerminalStatus } from '../../ploy/wire.ts';
import { fileError } from '../../state/file-error.ts';
import { isInside } from './members.ts';
import type { WorkspacePaths } from './paths.ts';

export const bundleName = 'repo-artifacts';
/** The server takes none that is larger: whoever has one makes an event of it. */
export const maxBundleBytes = limits.uploadBytes;

export type BundleFacts = {
  jobType: JobType;
  /** Of its chain. */
  isLast: boolean;
  gatesDisabled: boolean;
  status: TerminalStatus;
};

/** On failure, after the last gate, and after the last mig where no gate follows. */
export function isBundleWanted({ jobType, isLast, gatesDisabled, status }: BundleFacts): boolean {
  if (status !== 'Success') return true;
  if (jobType === 'post_gate') return true;
  return jobType === 'mig' && isLast && gatesDisabled;
}

/** Below it in the archive. */
const root = 'artifacts';
const packMs = 15 * 60_000;
const maxMembers = 200_000;
/** A bundle of which so much has been packed is too large by far; the rest would only cost time. */
const stopBytes = 2 * maxBundleBytes;
const watchMs = 500;

/** Undefined where there is no file. */
export async function buildArtifactBundle(
  _ctx: unknown,
  paths: WorkspacePaths,
  signal: AbortSignal,
): Promise<{ file: string; sizeBytes: number } | undefined> {
  const members: string[] = [];
  const hasFiles = await listMembers(Buffer.from(paths.artifacts).toString('latin1'), '', members);
  if (!hasFiles) return undefined;
  await mkdir(paths.scratch, { recursive: true, mode: 0o700 });
  const list = join(paths.scratch, 'members');
  const file = join(paths.scratch, `${bundleName}.tar.gz`);
  await writeFile(
    list,
    members
      .sort()
      .map((name) => `./${name}\0`)
      .join(''),
    'latin1',
  ).catch((error: unknown) => {
    throw fileError('write', list, error);
  });
  await packMembers(paths, { list, file, signal });
  return { file, sizeBytes: (await stat(file)).size };
}

/** Names are bytes and need not be text: here each byte is a character. */
function rawPath(top: string, path: string): Buffer {
  return Buffer.from(join(top, path), 'latin1');
}

/** Pipes, sockets and devices are left out as well. Gives whether there is anything but directories. */
async function listMembers(top: string, below: string, members: string[]): Promise<boolean> {
  let hasFiles = false;
  for (const entry of await readdir(rawPath(top, below), { withFileTypes: true, encoding: 'latin1' })) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    if (!(await isPacked(top, path, entry))) continue;
    if (members.length >= maxMembers)
      throw new StepError(`cannot pack ${top}: it has more than ${maxMembers} files`);
    members.push(path);
    const isIn = entry.isDirectory() ? await listMembers(top, path, members) : true;
    hasFiles = hasFiles || isIn;
  }
  return hasFiles;
}

async function isPacked(top: string, path: string, entry: Dirent): Promise<boolean> {
  return entry.isDirectory() || entry.isFile() || (entry.isSymbolicLink() && (await staysInside(top, path)));
}

async function staysInside(top: string, path: string): Promise<boolean> {
  const link = await readlink(rawPath(top, path), 'latin1').catch(() => undefined);
  return link !== undefined && isInside(path, link);
}

/** The members as they are listed, none added by tar itself. A file that grows meanwhile is packed as it was. */
async function packMembers(
  paths: WorkspacePaths,
  { list, file, signal }: { list: string; file: string; signal: AbortSignal },
): Promise<void> {
  const argv: [string, ...string[]] = [
    'tar',
    ...['--create', '--directory', paths.artifacts, '--no-recursion', '--null', '--files-from', list],
    ...['--format=pax', '--pax-option=delete=atime,delete=ctime,exthdr.name=%d/PaxHeaders/%f'],
    ...[
      '--mtime=@0',
      '--owner=0',
      '--group=0',
      '--numeric-owner',
      '--no-acls',
      '--no-selinux',
      '--no-xattrs',
    ],
    // By gzip itself: through here, gigabytes would leave their garbage. Without a name and a time.
    ...['--use-compress-program=gzip -n', '--file', file],
    ...[`--transform=flags=rh;s,^\\.,${root},`, '--warning=no-file-changed', '--ignore-failed-read'],
  ];
  await rm(file, { force: true });
  const tooLarge = new AbortController();
  const watch = setInterval(() => {
    stat(file).then(
      ({ size }) => size > stopBytes && tooLarge.abort(),
      () => {},
    );
  }, watchMs);
  try {
    await runProgram(argv, {
      signal: AbortSignal.any([signal, tooLarge.signal]),
      timeoutMs: packMs,
      // A file has changed while it was read.
      okStatuses: [0, 1],
      env: { LC_ALL: 'C' },
    });
  } catch (error) {
    if (!tooLarge.signal.aborted || signal.aborted) throw error;
  } finally {
    clearInterval(watch);
  }
}
