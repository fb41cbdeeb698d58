// The commit that makes what a mig has left in the workspace the baseline of the next job's diff.
import { copyFile, mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { Context } from '../../context.ts';
import { moveHead, requireGitDir, requirePlainGitDir, runGit, stageWorkspace } from './git.ts';
import type { WorkspacePaths } from './paths.ts';

const name = 'ploy-baseline';
const email = 'ploy-baseline@ploy.local';

/** After a mig that has succeeded. False where nothing has changed. May be repeated after a kill at any point. */
export async function commitBaseline(
  { clock }: Pick<Context, 'clock'>,
  paths: WorkspacePaths,
  { runId, jobId, signal }: { runId: string; jobId: string; signal: AbortSignal },
): Promise<boolean> {
  const { head, tree, index } = await stageWorkspace(paths, signal);
  if (tree === (await runGit(paths, ['rev-parse', '--verify', `${head}^{tree}`], signal))) return false;
  const directory = await requireGitDir(paths.workspace);
  await requirePlainGitDir(directory);
  const date = `${Math.floor(clock.now().getTime() / 1000)} +0000`;
  const env = {
    ...{ GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_AUTHOR_DATE: date },
    ...{ GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email, GIT_COMMITTER_DATE: date },
  };
  const message = `Ploy: apply changes for run ${runId} job ${jobId}`;
  const commit = await runGit(paths, ['commit-tree', tree, '-p', head, '-m', message], signal, { env });
  await mkdir(join(directory, 'objects/pack'), { recursive: true, mode: 0o755 });
  const packs = join(directory, 'objects/pack/pack');
  await runGit(paths, ['pack-objects', '--quiet', '--revs', packs], signal, { input: `${commit}\n^${head}\n` });
  // HEAD last: until then it is done again.
  await copyFile(index, join(directory, 'index.reeve'));
  await rename(join(directory, 'index.reeve'), join(directory, 'index'));
  await moveHead(paths.workspace, { from: head, to: commit }, signal);
  return true;
}
