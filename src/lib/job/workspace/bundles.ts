// Files that a step asks for, from the server's bundles: each bundle is fetched once, checked against the hash it is named by, and
// copied to where the container finds it.
import { lstat, mkdir } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { ControlPlane } from '../../control-plane/control-plane.ts';
import type { BindMount } from '../../docker/types.ts';
import { InputError } from '../../errors.ts';
import { runProgram } from '../../exec/run.ts';
import { limits } from '../../ploy/limits.ts';
import { containerDirs } from '../../ploy/names.ts';
import type { PlannedFile } from '../../ploy/plan.ts';
import { fetchArchive, unpackArchive } from './archive.ts';
import type { ArchiveRules } from './parse-listing.ts';
import type { WorkspacePaths } from './paths.ts';

const copyTimeoutMs = 10 * 60_000;

export type Materialization = {
  paths: WorkspacePaths;
  files: readonly PlannedFile[];
  controlPlane: Pick<ControlPlane, 'fetchSpecBundle'>;
  signal: AbortSignal;
};

/** What has to be mounted for itself: the files in a home. Throws InputError for a bundle that is not what it should be. */
export async function materializeFiles(about: Materialization): Promise<BindMount[]> {
  const { files, paths, signal } = about;
  const bundleIds = new Map(files.map(({ hash, bundleId }) => [hash, bundleId]));
  for (const [hash, bundleId] of bundleIds) await fetchBundle(about, hash, bundleId);
  const binds: BindMount[] = [];
  for (const { section, hash, dst, readOnly } of files) {
    const source = contentOf(paths, hash);
    if (section === 'home') binds.push({ source, target: dst, readOnly });
    else await copyContent(source, join(placeOf(paths, section), relative(containerDirs[section], dst)), signal);
  }
  return binds;
}

export function tmpDir({ scratch }: WorkspacePaths): string {
  return join(scratch, 'tmp');
}

function placeOf(paths: WorkspacePaths, section: 'in' | 'out' | 'tmp'): string {
  return section === 'tmp' ? tmpDir(paths) : paths[section];
}

function contentOf({ scratch }: WorkspacePaths, hash: string): string {
  return join(scratch, 'bundles', hash, 'content');
}

async function fetchBundle(about: Materialization, hash: string, bundleId: string): Promise<void> {
  const { paths, controlPlane, signal } = about;
  const what = `bundle ${bundleId}`;
  const directory = dirname(contentOf(paths, hash));
  const file = `${directory}.tar.gz`;
  await mkdir(directory, { recursive: true, mode: 0o755 });
  const fetch = async () => await controlPlane.fetchSpecBundle(bundleId);
  const sha256 = await fetchArchive({ what, fetch, file, signal, maxBytes: limits.bundleBytes });
  if (!sha256.startsWith(hash)) {
    throw new InputError(`cannot use ${what}: its sha256 is ${sha256}, which does not begin with ${hash}`);
  }
  await unpackArchive({ file, directory, rules: { ...bundleRules, what }, signal });
  const content = await lstat(contentOf(paths, hash)).catch(() => undefined);
  if (content === undefined) throw new InputError(`cannot use ${what}: it has no "content"`);
}

const bundleRules: Omit<ArchiveRules, 'what'> = {
  maxMembers: 100_000,
  maxTotalBytes: 2 * (1 << 30),
  maxFileBytes: limits.bundleFileBytes,
  links: 'none',
  duplicates: 'none',
};

/** A directory goes into one that is there. */
async function copyContent(source: string, target: string, signal: AbortSignal): Promise<void> {
  const script = 'umask 022 && mkdir -p -- "$3" && exec cp -a --no-preserve=ownership -T -- "$1" "$2"';
  await runProgram(['sh', '-c', script, 'sh', source, target, dirname(target)], {
    ...{ signal, timeoutMs: copyTimeoutMs },
  });
}
