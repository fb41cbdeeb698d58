// The bundle of a run's artifacts: when it is wanted, and how it is packed. The same files give the same bytes.
import { createWriteStream } from 'node:fs';
import { lstat, mkdir, readdir, readlink, realpath } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Context } from '../../context.ts';
import { streamProgram } from '../../exec/run.ts';
import { limits } from '../../ploy/limits.ts';
import type { JobType, TerminalStatus } from '../../ploy/wire.ts';
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

const packTimeoutMs = 10 * 60_000;

/** Undefined where there is no file. One that is too large is packed no further: `sizeBytes` says that it is. */
export async function buildArtifactBundle(
  _ctx: Context,
  paths: WorkspacePaths,
  signal: AbortSignal,
): Promise<{ file: string; sizeBytes: number } | undefined> {
  if (!(await hasFile(paths.artifacts))) return undefined;
  await mkdir(paths.scratch, { recursive: true, mode: 0o750 });
  const file = join(paths.scratch, 'artifacts.tar.gz');
  let sizeBytes = 0;
  const measure = async function* (): AsyncGenerator<Uint8Array> {
    for await (const chunk of streamProgram(['tar', ...packArgs, `--directory=${paths.run}`], {
      input: Readable.from(listMembers(paths.artifacts, paths.run)),
      env: { LC_ALL: 'C', TZ: 'UTC' },
      ...{ timeoutMs: packTimeoutMs, signal, okStatuses: [0, 1] },
    })) {
      sizeBytes += chunk.length;
      yield chunk;
      if (sizeBytes > maxBundleBytes) return;
    }
  };
  await pipeline(Readable.from(measure(), { objectMode: false }), createWriteStream(file, { mode: 0o600 }), {
    signal,
  });
  return { file, sizeBytes };
}

/** Names come sorted and by stdin; holes of files stay holes. */
const packArgs = [
  ...['--create', '--file=-', '--use-compress-program=gzip -n', '--format=gnu', '--sparse', '--no-recursion'],
  ...['--owner=0', '--group=0', '--numeric-owner', '--mtime=@0', '--ignore-failed-read'],
  ...['--null', '--verbatim-files-from', '--files-from=-'],
];

async function hasFile(directory: string): Promise<boolean> {
  for await (const entry of walk(directory)) if (entry.kind !== 'directory') return true;
  return false;
}

async function* listMembers(root: string, base: string): AsyncGenerator<Buffer> {
  for await (const { path } of walk(root)) {
    yield Buffer.concat([relativeTo(base, path), Buffer.from([0])]);
  }
}

/** Names are bytes: they need not be text. */
function relativeTo(base: string, path: Buffer): Buffer {
  return path.subarray(Buffer.byteLength(base) + 1);
}

type Walked = { path: Buffer; kind: 'directory' | 'file' | 'link' };

/** Sorted; without sockets and the like, and without links that lead out of the root. */
async function* walk(root: string): AsyncGenerator<Walked> {
  const rootAbout = await lstat(root).catch(() => undefined);
  if (rootAbout?.isDirectory() === true) yield* walkDirectory(Buffer.from(root), root);
}

async function* walkDirectory(directory: Buffer, root: string): AsyncGenerator<Walked> {
  yield { path: directory, kind: 'directory' };
  const entries = await readdir(directory, { withFileTypes: true, encoding: 'buffer' });
  entries.sort((one, other) => Buffer.compare(one.name, other.name));
  for (const entry of entries) {
    const path = Buffer.concat([directory, Buffer.from('/'), entry.name]);
    if (entry.isDirectory()) yield* walkDirectory(path, root);
    else if (entry.isFile()) yield { path, kind: 'file' };
    else if (entry.isSymbolicLink() && (await staysInside(path, root))) yield { path, kind: 'link' };
  }
}

async function staysInside(link: Buffer, root: string): Promise<boolean> {
  const named = resolve(dirname(link.toString()), (await readlink(link, 'buffer')).toString());
  const real = await realpath(link).catch(() => undefined);
  const realRoot = await realpath(root);
  return isBelow(named, root) && (real === undefined || isBelow(real, realRoot));
}

function isBelow(path: string, root: string): boolean {
  const way = relative(root, path);
  return way !== '..' && !way.startsWith('../');
}
