// The commit that makes what a mig has left in the workspace the baseline of the next job's diff.
import { copyFile, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { BaseContext } from '../../context.ts';
import { fileError } from '../../state/file-error.ts';
import { type Looked, readTree, stageAfter } from './before.ts';
import { askGit, runGit } from './git.ts';
import type { WorkspacePaths } from './paths.ts';
import { readHead, requirePlainWay } from './repository.ts';

const name = 'ploy-baseline';
const email = 'ploy-baseline@ploy.local';

/** After a mig that has succeeded. False where nothing has changed. May be repeated after a kill at any point. */
export async function commitBaseline(
  { clock, lookAfter }: Pick<BaseContext, 'clock'> & Looked,
  paths: WorkspacePaths,
  { runId, jobId, signal }: { runId: string; jobId: string; signal: AbortSignal },
): Promise<boolean> {
  const ctx = { signal };
  const { commit: before, treeOut, commitTree } = await (lookAfter?.() ?? stageAfter(ctx, paths));
  const { commit: head, ref = 'HEAD' } = await readHead(paths.workspace);
  const headTree = head === before ? commitTree : undefined;
  if (treeOut === (headTree ?? (await readTree(ctx, paths, head)))) return false;
  const date = `${Math.floor(clock.now().getTime() / 1000)} +0000`;
  const env = {
    ...{ GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_AUTHOR_DATE: date },
    ...{ GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email, GIT_COMMITTER_DATE: date },
  };
  const message = `Ploy: apply changes for run ${runId} job ${jobId}`;
  const commit = await askGit(ctx, paths, ['commit-tree', treeOut, '-p', head, '-m', message], { env });
  const directory = join(paths.workspace, '.git');
  for (const way of ['objects/pack', 'index', 'HEAD', ref]) await requirePlainWay(directory, way);
  await mkdir(join(directory, 'objects/pack'), { recursive: true, mode: 0o755 });
  const packs = join(directory, 'objects/pack/pack');
  await runGit(ctx, paths, ['pack-objects', '--quiet', '--revs', packs], { input: `${commit}\n^${head}\n` });
  const index = (file: string): Promise<void> => copyFile(join(paths.git, 'index'), file);
  await replaceFile(join(directory, 'index'), index);
  // Last: until then it is done again.
  await replaceFile(join(directory, ref), (file) =>
    writeFile(file, `${commit}\n`, { flag: 'wx', mode: 0o644 }),
  );
  return true;
}

/** By a file beside it, so that a link in its place is replaced and never followed. */
async function replaceFile(file: string, write: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = `${file}.reeve-new`;
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o755 });
    await rm(temporary, { recursive: true, force: true });
    await write(temporary);
    await rename(temporary, file);
  } catch (error) {
    throw fileError('write', file, error);
  }
}
