// What the workspace was before a job, on disk until the job has ended: what came of it is told by comparison.
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../../state/atomic-file.ts';
import { isRecord } from '../../state/shape.ts';
import { askGit, type GitContext, openGit } from './git.ts';
import type { WorkspacePaths } from './paths.ts';
import { readHead } from './repository.ts';
import { stageWorkspace } from './stage.ts';

export type Before = { commit: string; tree: string };

export async function writeBefore(paths: WorkspacePaths, before: Before): Promise<void> {
  await writeFileAtomic(paths.before, `${JSON.stringify(before)}\n`, { keepPrevious: false });
}

/** The workspace as a job has left it, beside what it was before. */
export type After = Before & {
  treeOut: string;
  /** Undefined where it has to be asked for. */
  commitTree: string | undefined;
};

/** For whoever tells several things of one workspace: it is looked at once, as nobody changes it meanwhile. */
export type Looked = { lookAfter?: () => Promise<After> };

export function lookOnce(ctx: GitContext, paths: WorkspacePaths): Required<Looked> {
  let after: Promise<After> | undefined;
  return {
    lookAfter: () => {
      after ??= stageAfter(ctx, paths);
      return after;
    },
  };
}

/** The workspace as it is now. Its index is kept: what has not changed since is not read again. */
export async function stageAfter(ctx: GitContext, paths: WorkspacePaths): Promise<After> {
  await openGit(paths);
  const before = await readBefore(ctx, paths);
  const hasIndex = await stat(join(paths.git, 'index')).then(
    () => true,
    () => false,
  );
  const { commit } = before;
  const staged = await stageWorkspace(ctx, paths, hasIndex ? { commit } : { base: commit, commit });
  return { ...before, treeOut: staged.tree, commitTree: staged.commitTree };
}

/** Where the record is lost: as if the job had begun with what HEAD has now. */
async function readBefore(ctx: GitContext, paths: WorkspacePaths): Promise<Before> {
  const raw = await readFile(paths.before, 'utf8').then(parseJson, () => undefined);
  if (isRecord(raw) && typeof raw['commit'] === 'string' && typeof raw['tree'] === 'string') {
    return { commit: raw['commit'], tree: raw['tree'] };
  }
  const { commit } = await readHead(paths.workspace);
  return { commit, tree: await readTree(ctx, paths, commit) };
}

export async function readTree(ctx: GitContext, paths: WorkspacePaths, commit: string): Promise<string> {
  return await askGit(ctx, paths, ['rev-parse', '--verify', `${commit}^{tree}`]);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
