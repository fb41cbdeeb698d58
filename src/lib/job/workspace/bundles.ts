// Files that a spec brings along: bundles of the server, proven by their hash, unpacked beside the job and put where the job's
// container is to find them.
import { chmod, cp, mkdir, rm, stat } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import type { Readable } from 'node:stream';
import type { BindMount } from '../../docker/types.ts';
import { InputError } from '../../errors.ts';
import { limits } from '../../ploy/limits.ts';
import type { PlannedFile } from '../../ploy/plan.ts';
import { fileError } from '../../state/file-error.ts';
import type { WorkspacePaths } from './paths.ts';
import { fetchArchive, unpackArchive } from './unpack.ts';

const bundleLimits = {
  archiveBytes: limits.bundleBytes,
  members: 100_000,
  totalBytes: 1024 ** 3,
  fileBytes: limits.bundleFileBytes,
  links: false,
} as const;

export type BundleSource = {
  fetchSpecBundle(bundleId: string): Promise<Readable>;
  signal: AbortSignal;
};

/** Gives the mounts that the files need besides the job's own directories. Assumes these to be empty. */
export async function placeBundles(
  paths: WorkspacePaths,
  files: readonly PlannedFile[],
  source: BundleSource,
): Promise<BindMount[]> {
  const hashes = new Map(files.map(({ hash, bundleId }) => [hash, bundleId]));
  // One after another: each may take as much of the disk as it is allowed to.
  for (const [hash, bundleId] of hashes) await stageBundle(paths, { hash, bundleId }, source);
  const binds: BindMount[] = [];
  // What lies in a directory of another entry's comes after it.
  for (const file of [...files].sort((a, b) => (a.dst < b.dst ? -1 : 1))) {
    const bind = await placeFile(paths, file);
    if (bind !== undefined) binds.push(bind);
  }
  return binds;
}

async function stageBundle(
  paths: WorkspacePaths,
  { hash, bundleId }: { hash: string; bundleId: string },
  { fetchSpecBundle, signal }: BundleSource,
): Promise<void> {
  const what = `bundle ${bundleId}`;
  const directory = join(paths.staged, hash);
  const file = `${directory}.tar.gz`;
  await mkdir(directory, { recursive: true, mode: 0o755 });
  const archive = { what, file, limits: bundleLimits, signal };
  const sha256 = await fetchArchive(archive, () => fetchSpecBundle(bundleId));
  if (!sha256.startsWith(hash)) {
    throw new InputError(`cannot take ${what}: its sha256 is ${sha256}, and the spec names ${hash}`);
  }
  await unpackArchive(archive, directory);
  await rm(file);
}

/** In the job's own directories it is a copy, so that what the container leaves there is kept; read-only it is mounted over that. */
async function placeFile(
  paths: WorkspacePaths,
  { section, hash, dst, readOnly }: PlannedFile,
): Promise<BindMount | undefined> {
  const content = join(paths.staged, hash, 'content');
  await stat(content).catch(() => {
    throw new InputError(`cannot place ${dst}: bundle ${hash} has nothing named "content"`);
  });
  if (section === 'home') return { source: content, target: dst, readOnly };
  const root = paths[section];
  const target = join(root, posix.relative(`/${section}`, dst));
  try {
    await makeWay(root, dirname(target));
    await cp(content, target, {
      recursive: true,
      preserveTimestamps: true,
      errorOnExist: true,
      force: false,
    });
  } catch (error) {
    throw fileError('place', target, error);
  }
  return readOnly ? { source: target, target: dst, readOnly: true } : undefined;
}

/** For whoever works in the container, whatever our own mask is. */
async function makeWay(root: string, directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  for (let made = directory; made.length > root.length; made = dirname(made)) await chmod(made, 0o755);
}

/** As `/tmp` is everywhere. The mask of the process does not count. */
export async function makeTmp(path: string): Promise<void> {
  await mkdir(path, { recursive: true });
  await chmod(path, 0o1777);
}
