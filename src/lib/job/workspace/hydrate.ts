// The workspace of a run, made once from the server's snapshot and used by all of its jobs here. It takes its place by one
// rename, so that whatever was killed before, there is a whole one or none; where two jobs make it, the first one's stays.
import { chmod, lstat, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { BaseContext } from '../../context.ts';
import { InputError, systemErrorCode } from '../../errors.ts';
import { readBootId } from '../../host/processes.ts';
import { fileError } from '../../state/file-error.ts';
import { askGit, openGit } from './git.ts';
import type { WorkspacePaths } from './paths.ts';
import { isDirectory, readHead, readPlainFile } from './repository.ts';
import { type FetchLimits, fetchArchive, unpackArchive } from './unpack.ts';

const gib = 1024 ** 3;

/** What a repository with its history may come to: beyond it a mistake or an attack is likelier. */
const snapshotLimits: FetchLimits = {
  archiveBytes: 8 * gib,
  members: 2_000_000,
  totalBytes: 32 * gib,
  fileBytes: 8 * gib,
  links: true,
};

export type HydrateRequest = {
  runId: string;
  commitSha: string | undefined;
  repoShaIn: string | undefined;
  fetchSnapshot(runId: string): Promise<Readable>;
  signal: AbortSignal;
  limits?: FetchLimits;
};

/** In the workspace, so that it comes with it: at which start of the machine it was made. */
const bootFile = '.git/reeve-boot';

/** What stands in a workspace's place and is none. */
type Useless = { inode: number } | undefined;

type HydrateContext = Pick<BaseContext, 'log' | 'clock'>;

/** True where it was made now. Throws InputError where it cannot be what the job is to work on. */
export async function hydrateWorkspace(
  ctx: HydrateContext,
  paths: WorkspacePaths,
  request: HydrateRequest,
): Promise<boolean> {
  const { commitSha, runId } = request;
  const found = await judgeWorkspace(paths.workspace, commitSha);
  if (found === 'usable') return false;
  const wanted = requireCommit(request);
  await mkdir(paths.run, { recursive: true, mode: 0o700 });
  const staging = await mkdtemp(join(paths.run, '.workspace-'));
  try {
    const tree = await unpackSnapshot(staging, request);
    await requireHead(tree, join(staging, 'git'), wanted, request.signal);
    await writeFile(join(tree, bootFile), await readBootId());
    const isOurs = await takePlace(tree, paths.workspace, found);
    if (isOurs) ctx.log.debug(`made the workspace of run ${runId}`, { commit: wanted });
    return isOurs;
  } catch (error) {
    throw fileError('make workspace', paths.workspace, error);
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

/**
 * One that was made before the machine last started may have lost its content with the power, unless a job has built on it since:
 * that can be made from nowhere again.
 */
async function judgeWorkspace(workspace: string, commitSha: string | undefined): Promise<'usable' | Useless> {
  const about = await lstat(workspace).catch(() => undefined);
  const useless = about === undefined ? undefined : { inode: about.ino };
  if (!(await isDirectory(join(workspace, '.git')))) return useless;
  const boot = await readPlainFile(join(workspace, bootFile));
  if (boot === (await readBootId()) || commitSha === undefined) return 'usable';
  const head = await readHead(workspace).catch(() => undefined);
  return head !== undefined && head.commit !== commitSha ? 'usable' : useless;
}

function requireCommit({ runId, commitSha, repoShaIn }: HydrateRequest): string {
  if (commitSha === undefined || commitSha === '') {
    throw new InputError(`cannot make the workspace of run ${runId}: the claim has no commit_sha`);
  }
  if (repoShaIn !== undefined && repoShaIn !== '' && repoShaIn !== commitSha) {
    throw new InputError(
      `cannot make the workspace of run ${runId}: it is gone with what a job before has changed in it (${repoShaIn})`,
    );
  }
  return commitSha;
}

async function unpackSnapshot(staging: string, request: HydrateRequest): Promise<string> {
  const { runId, signal, limits = snapshotLimits } = request;
  const file = join(staging, 'snapshot.tar.gz');
  const tree = join(staging, 'tree');
  const archive = { what: `the snapshot of run ${runId}`, file, limits, signal };
  await fetchArchive(archive, () => request.fetchSnapshot(runId));
  await mkdir(tree);
  await chmod(tree, 0o755);
  await unpackArchive(archive, tree);
  await rm(file);
  return tree;
}

/** Its HEAD is the commit, and the commit is there. */
async function requireHead(tree: string, git: string, wanted: string, signal: AbortSignal): Promise<void> {
  const { commit } = await readHead(tree);
  if (commit !== wanted) {
    throw new InputError(
      `cannot use the snapshot: its HEAD is ${commit}, and the claim's commit_sha is ${wanted}`,
    );
  }
  const place = { git, workspace: tree };
  await openGit(place);
  await askGit({ signal }, place, ['rev-parse', '--verify', '--quiet', `${commit}^{tree}`]).catch(
    (error: unknown) => {
      throw new InputError(`cannot use the snapshot: it lacks its commit ${commit}`, { cause: error });
    },
  );
}

/** False where another job's was there first. What is no workspace makes room. */
async function takePlace(tree: string, workspace: string, useless: Useless): Promise<boolean> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await rename(tree, workspace);
      return true;
    } catch (error) {
      if (!['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(systemErrorCode(error) ?? '') || attempt > 5)
        throw error;
    }
    const about = await lstat(workspace).catch(() => undefined);
    if (about === undefined) continue;
    if (about.ino !== useless?.inode) return false;
    // Aside first: what is half removed is never taken for a whole one.
    await rename(workspace, `${tree}-old-${attempt}`).catch((error: unknown) => {
      if (systemErrorCode(error) !== 'ENOENT') throw error;
    });
  }
}
