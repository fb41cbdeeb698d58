// The whole workspace as a tree of git's, by an index of ours. Submodules are never looked into by git: it would run itself in
// them under their own configuration, and so whatever that names.
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { InputError } from '../../errors.ts';
import { askGit, type GitContext, type GitPlace, runGit, runGitScript, streamGit } from './git.ts';
import { isDirectory, readHead } from './repository.ts';

type Link = { path: string; commit: string };

const noObject = '0'.repeat(40);

/** What the index begins with, and what its tree is compared with. */
export type StageAbout = {
  /** A commit or tree; what is tracked there stays so, though a rule ignores it. Without it the index goes on as it is. */
  base?: string;
  /** A commit whose tree is told as well. */
  commit?: string;
};

/** `commitTree` is undefined where it was not asked for or is not there. */
export type Staged = { tree: string; commitTree: string | undefined };

/** Ends before anything is staged where there are submodules, or where that cannot be told. */
const wholeScript = `
base=$1 commit=$2 && shift 2 || exit 1
if [ -n "$base" ]; then git "$@" read-tree "$base" || exit; fi
git "$@" ls-files --stage -z >"$GIT_DIR/entries" || exit
grep -qz "^160000 " "$GIT_DIR/entries"
[ $? -eq 1 ] || exit 0
git "$@" add --all -- . && git "$@" write-tree || exit
[ -z "$commit" ] || git "$@" rev-parse --verify --quiet "$commit^{tree}" || :
`;

/** Everything in the workspace but what is ignored goes into the index. */
export async function stageWorkspace(
  ctx: GitContext,
  place: GitPlace,
  { base = '', commit = '' }: StageAbout = {},
): Promise<Staged> {
  const trees = await runGitScript(ctx, place, wholeScript, [base, commit]);
  const [tree = '', commitTree] = trees.split('\n').filter((line) => line !== '');
  if (tree !== '') return { tree, commitTree };
  await stageAround(ctx, place, await listLinks(ctx, place));
  return { tree: await askGit(ctx, place, ['write-tree']), commitTree: undefined };
}

async function stageAround(ctx: GitContext, place: GitPlace, links: readonly Link[]): Promise<void> {
  if (links.length > 0)
    await updateIndex(
      ctx,
      place,
      links.map(({ path }) => `0 ${noObject}\t${path}`),
    );
  const kept: Link[] = [];
  for (const link of links) {
    const path = join(place.workspace, link.path);
    if (await isPlainDirectory(place.workspace, link.path))
      kept.push({ ...link, commit: await findCommit(path, link) });
  }
  const paths = ['.', ...kept.map(({ path }) => `:(top,exclude,literal)${path}`)].join('\0');
  await runGit(ctx, place, ['add', '--all', '--pathspec-from-file=-', '--pathspec-file-nul'], {
    input: paths,
  });
  if (kept.length > 0)
    await updateIndex(
      ctx,
      place,
      kept.map(({ path, commit }) => `160000 ${commit}\t${path}`),
    );
}

async function updateIndex(ctx: GitContext, place: GitPlace, entries: readonly string[]): Promise<void> {
  await runGit(ctx, place, ['update-index', '-z', '--index-info'], { input: `${entries.join('\0')}\0` });
}

/** Submodules as the index has them. */
async function listLinks(ctx: GitContext, place: GitPlace): Promise<Link[]> {
  const links: Link[] = [];
  for await (const entry of splitEntries(streamGit(ctx, place, ['ls-files', '--stage', '-z']))) {
    const [, commit, path] = /^160000 ([0-9a-f]{40}) \d\t(.*)$/s.exec(entry) ?? [];
    if (commit === undefined || path === undefined) continue;
    // It could not be kept out of git's sight by its name.
    if (path.includes('\ufffd'))
      throw new InputError(`cannot look at submodule ${JSON.stringify(path)}: its name is no text`);
    links.push({ path, commit });
  }
  return links;
}

async function* splitEntries(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const bytes = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
    let start = 0;
    for (let end = bytes.indexOf(0); end >= 0; end = bytes.indexOf(0, start)) {
      yield bytes.toString('utf8', start, end);
      start = end + 1;
    }
    rest = Buffer.from(bytes.subarray(start));
  }
}

/** Each part of the way is a directory, none a link. */
async function isPlainDirectory(workspace: string, path: string): Promise<boolean> {
  let directory = workspace;
  for (const part of path.split('/')) {
    directory = join(directory, part);
    if (!(await isDirectory(directory))) return false;
  }
  return true;
}

/** What is checked out there where it tells so itself; else what the index had. */
async function findCommit(path: string, link: Link): Promise<string> {
  const about = await lstat(join(path, '.git')).catch(() => undefined);
  if (about?.isDirectory() !== true) return link.commit;
  return await readHead(path).then(
    ({ commit }) => commit,
    () => link.commit,
  );
}
