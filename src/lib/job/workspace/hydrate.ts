// A run's workspace, made once from the server's snapshot: beside its place first, and moved there when it is whole. What a kill
// leaves half-made is made anew.
import { lstat, mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ControlPlane } from '../../control-plane/control-plane.ts';
import { InputError, systemErrorCode } from '../../errors.ts';
import type { ClaimPayload } from '../../ploy/wire.ts';
import { fetchArchive, unpackArchive } from './archive.ts';
import { readHead } from './git.ts';
import type { ArchiveRules } from './parse-listing.ts';
import type { WorkspacePaths } from './paths.ts';

const gib = 1 << 30;

const maxSnapshotBytes = 8 * gib;
const snapshotRules: ArchiveRules = {
  what: 'the snapshot',
  maxMembers: 2_000_000,
  maxTotalBytes: 32 * gib,
  maxFileBytes: 16 * gib,
  links: 'inside',
  duplicates: 'last',
};

export type Hydration = {
  paths: WorkspacePaths;
  payload: ClaimPayload;
  controlPlane: Pick<ControlPlane, 'fetchSnapshot'>;
  signal: AbortSignal;
};

/** False where it was there. Throws InputError for what the server has wrong, and where what the job goes on from is not here. */
export async function hydrateWorkspace(hydration: Hydration): Promise<boolean> {
  const { paths, payload, signal } = hydration;
  if (await isWorkspace(paths.workspace)) return false;
  const commit = requireStart(payload);
  const staging = join(paths.scratch, 'snapshot');
  const tree = join(staging, 'tree');
  await rm(staging, { recursive: true, force: true });
  await mkdir(tree, { recursive: true, mode: 0o755 });
  try {
    await fillTree(hydration, { staging, tree });
    const head = await readHead(tree, signal);
    if (head !== commit) {
      throw new InputError(`cannot use the snapshot of run ${payload.id}: its HEAD is ${head}, not ${commit}`);
    }
    return await putInPlace(tree, paths.workspace);
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

async function isWorkspace(directory: string): Promise<boolean> {
  const about = await lstat(join(directory, '.git')).catch(() => undefined);
  return about?.isDirectory() === true;
}

/** The commit to begin with. Only the first of a chain begins with it: another one would work on less than it was given. */
function requireStart({ id, commit_sha: commit = '', repo_sha_in: input }: ClaimPayload): string {
  const wanted = commit.trim();
  if (wanted === '') throw new InputError(`cannot make the workspace of run ${id}: the claim names no commit`);
  if (input !== undefined && input.trim() !== '' && input.trim() !== wanted) {
    throw new InputError(
      `cannot go on with run ${id}: the workspace in which its last job left ${input.trim()} is not here any more`,
    );
  }
  return wanted;
}

async function fillTree(
  { payload, controlPlane, signal }: Hydration,
  { staging, tree }: { staging: string; tree: string },
): Promise<void> {
  const file = join(staging, 'snapshot.tar.gz');
  await fetchArchive({
    what: snapshotRules.what,
    fetch: async () => await controlPlane.fetchSnapshot(payload.id),
    maxBytes: maxSnapshotBytes,
    ...{ file, signal },
  });
  await unpackArchive({ file, directory: tree, rules: snapshotRules, signal });
}

/** False where another job of the run was first: its workspace is the run's. */
async function putInPlace(tree: string, workspace: string): Promise<boolean> {
  try {
    await rename(tree, workspace);
    return true;
  } catch (error) {
    const code = systemErrorCode(error);
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
  }
  if (await isWorkspace(workspace)) return false;
  // Nobody's workspace: without a repository no job could go on in it.
  await rm(workspace, { recursive: true, force: true });
  await rename(tree, workspace);
  return true;
}
