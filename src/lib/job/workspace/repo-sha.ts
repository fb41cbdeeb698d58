// The hash that names what a job has left in the workspace: ploy's `repo_sha_v1`.
import { createHash } from 'node:crypto';
import { InputError } from '../../errors.ts';
import { type Looked, stageAfter } from './before.ts';
import type { GitContext } from './git.ts';
import type { WorkspacePaths } from './paths.ts';

const sha40 = /^[0-9a-f]{40}$/;

/** After `commitBaseline` or before it: it gives the same. Throws InputError for what is no hash. */
export async function computeRepoShaOut(
  { lookAfter }: GitContext & Looked,
  paths: WorkspacePaths,
  repoShaIn: string,
  signal: AbortSignal,
): Promise<string> {
  const { tree, treeOut } = await (lookAfter?.() ?? stageAfter({ signal }, paths));
  return renderRepoSha({ repoShaIn, before: tree, after: treeOut });
}

/** Pure: the same as long as the tree is, else the commit that nobody makes. */
export function renderRepoSha(trees: { repoShaIn: string; before: string; after: string }): string {
  const repoShaIn = trees.repoShaIn.trim();
  if (!sha40.test(repoShaIn)) {
    throw new InputError(`cannot compute repo_sha_out: repo_sha_in ${JSON.stringify(repoShaIn)} is no hash`);
  }
  if (trees.after === trees.before) return repoShaIn;
  const who = 'node <node@ploy.local> 0 +0000';
  const lines = [`tree ${trees.after}`, `parent ${repoShaIn}`, `author ${who}`, `committer ${who}`];
  const content = `${lines.join('\n')}\n\nploy repo_sha_v1\n`;
  return createHash('sha1').update(`commit ${content.length}\0${content}`).digest('hex');
}
