// The hash that names what a job has left in the workspace: ploy's `repo_sha_v1`.
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Context } from '../../context.ts';
import { InputError, systemErrorCode } from '../../errors.ts';
import { runGit, stageWorkspace } from './git.ts';
import type { WorkspacePaths } from './paths.ts';

const sha40 = /^[0-9a-f]{40}$/;

/** After `commitBaseline` or before it: it gives the same. Throws InputError for what is no hash. */
export async function computeRepoShaOut(
  _ctx: Context,
  paths: WorkspacePaths,
  repoShaIn: string,
  signal: AbortSignal,
): Promise<string> {
  const { head, tree } = await stageWorkspace(paths, signal);
  const before = (await readTreeBefore(paths)) ?? (await runGit(paths, ['rev-parse', `${head}^{tree}`], signal));
  return planRepoSha({ repoShaIn, before, tree });
}

/** Pure: the same as long as the tree is, else the commit that nobody makes. */
export function planRepoSha(facts: { repoShaIn: string; before: string; tree: string }): string {
  const repoShaIn = facts.repoShaIn.trim();
  if (!sha40.test(repoShaIn)) {
    throw new InputError(`cannot compute repo_sha_out: repo_sha_in ${JSON.stringify(repoShaIn)} is no hash`);
  }
  if (facts.tree === facts.before) return repoShaIn;
  const who = 'node <node@ploy.local> 0 +0000';
  const lines = [`tree ${facts.tree}`, `parent ${repoShaIn}`, `author ${who}`, `committer ${who}`];
  const content = `${lines.join('\n')}\n\nploy repo_sha_v1\n`;
  return createHash('sha1').update(`commit ${content.length}\0${content}`).digest('hex');
}

/** Before the job's container runs: what an earlier job has left without a commit is not this one's change. */
export async function writeTreeBefore(paths: WorkspacePaths, signal: AbortSignal): Promise<void> {
  const { tree } = await stageWorkspace(paths, signal);
  await writeFile(treeFile(paths), `${tree}\n`, { mode: 0o600 });
}

async function readTreeBefore(paths: WorkspacePaths): Promise<string | undefined> {
  try {
    const tree = (await readFile(treeFile(paths), 'utf8')).trim();
    return sha40.test(tree) ? tree : undefined;
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function treeFile({ scratch }: WorkspacePaths): string {
  return join(scratch, 'tree-before');
}
