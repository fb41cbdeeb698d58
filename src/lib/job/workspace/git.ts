// Git on a workspace that belongs to a stranger. Its own configuration is never read where git looks at files: we work from a git
// directory of ours, with an index of ours, and take only objects and HEAD from the workspace's. No hook, filter, monitor,
// driver or transport that somebody has written there is ever run.
import { constants } from 'node:fs';
import { access, lstat, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InputError, StepError } from '../../errors.ts';
import { type Argv, type ProgramOptions, runProgram } from '../../exec/run.ts';
import type { WorkspacePaths } from './paths.ts';
import { withOpenUmask } from './programs.ts';

export type Repository = {
  /** HEAD's commit. */
  head: string;
  /** All files of the workspace that are not ignored, as a tree. */
  tree: string;
  index: string;
};

const gitTimeoutMs = 30 * 60_000;
const sha40 = /^[0-9a-f]{40}$/;

const settings = [
  ...['core.hooksPath=/dev/null', 'core.fsmonitor=false', 'core.attributesFile=/dev/null'],
  ...['core.untrackedCache=false', 'core.splitIndex=false', 'core.pager=cat', 'core.quotePath=true'],
  ...['commit.gpgSign=false', 'gc.auto=0', 'maintenance.auto=false', 'protocol.allow=never'],
  ...['core.autocrlf=false', 'core.safecrlf=false', 'advice.addEmbeddedRepo=false', 'safe.directory=*'],
].flatMap((setting) => ['-c', setting]);

const closedEnv = {
  ...{ LC_ALL: 'C', TZ: 'UTC', HOME: '/nonexistent', XDG_CONFIG_HOME: '/nonexistent' },
  ...{ GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_SYSTEM: '/dev/null', GIT_CONFIG_GLOBAL: '/dev/null' },
  ...{ GIT_ATTR_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0', GIT_ASKPASS: '/bin/false', GIT_PAGER: 'cat' },
  // Over every `protocol.*.allow` that a configuration has: no object is ever fetched.
  ...{ GIT_ALLOW_PROTOCOL: '', GIT_NO_LAZY_FETCH: '1', GIT_OPTIONAL_LOCKS: '0', GIT_NO_REPLACE_OBJECTS: '1' },
};

/** HEAD of a workspace. Throws InputError where there is no repository, or one that points elsewhere. */
export async function readHead(workspace: string, signal: AbortSignal): Promise<string> {
  const directory = await requireGitDir(workspace);
  const options = { signal, timeoutMs: gitTimeoutMs, env: closedEnv, cwd: '/' };
  const argv = ['git', ...settings, `--git-dir=${directory}`, 'rev-parse', '--verify', 'HEAD^{commit}'] as const;
  const { stdout } = await runProgram(argv, options);
  const head = stdout.trim();
  if (!sha40.test(head)) throw new InputError(`cannot use the repository: its HEAD is ${JSON.stringify(head)}`);
  return head;
}

/** The `.git` of a workspace, if it is one of its own. */
export async function requireGitDir(workspace: string): Promise<string> {
  const directory = join(workspace, '.git');
  const about = await lstat(directory).catch(() => undefined);
  if (about?.isDirectory() !== true) {
    throw new InputError('cannot use the workspace: its .git is no directory', { code: 'no-repository' });
  }
  const common = await lstat(join(directory, 'commondir')).catch(() => undefined);
  const objects = await lstat(join(directory, 'objects')).catch(() => undefined);
  if (common !== undefined || objects?.isDirectory() !== true) {
    throw new InputError('cannot use the workspace: its .git points elsewhere', { code: 'no-repository' });
  }
  return directory;
}

/** Looks at the workspace as it is now: an index from HEAD, and everything added to it. */
export async function stageWorkspace(paths: WorkspacePaths, signal: AbortSignal): Promise<Repository> {
  const head = await readHead(paths.workspace, signal);
  const index = await makeOwnGitDir(paths);
  // Of a git that was killed. Whoever works on the job holds its lock, so that nobody else's it is.
  await rm(`${index}.lock`, { force: true });
  // `--reset` takes over what the index knows of files that are still the same, so that a second look is quick.
  const hasIndex = await access(index, constants.F_OK).then(
    () => true,
    () => false,
  );
  await runGit(paths, ['read-tree', ...(hasIndex ? ['--reset'] : []), head], signal);
  const excludes = await findExcludes(paths.workspace);
  await runGit(paths, ['-c', `core.excludesFile=${excludes}`, 'add', '--all', '--', '.'], signal);
  const tree = await runGit(paths, ['write-tree'], signal);
  return { head, tree, index };
}

/** What the repository keeps to itself beside its `.gitignore`. */
async function findExcludes(workspace: string): Promise<string> {
  const file = join(workspace, '.git/info/exclude');
  const [directory, about] = await Promise.all(
    [join(workspace, '.git/info'), file].map((path) => lstat(path).catch(() => undefined)),
  );
  return directory?.isDirectory() === true && about?.isFile() === true ? file : '/dev/null';
}

async function makeOwnGitDir({ scratch, workspace }: WorkspacePaths): Promise<string> {
  const own = join(scratch, 'git');
  for (const name of ['objects/info', 'refs']) await mkdir(join(own, name), { recursive: true, mode: 0o700 });
  const files = {
    HEAD: 'ref: refs/heads/none\n',
    config: '[core]\n\trepositoryformatversion = 0\n\tbare = false\n',
    'objects/info/alternates': `${join(workspace, '.git/objects')}\n`,
  };
  for (const [name, content] of Object.entries(files)) await writeFile(join(own, name), content, { mode: 0o600 });
  return join(own, 'index');
}

/** Its trimmed answer. */
export async function runGit(
  paths: WorkspacePaths,
  args: readonly string[],
  signal: AbortSignal,
  extra: { env?: Readonly<Record<string, string>>; input?: string } = {},
): Promise<string> {
  const { argv, options } = gitProgram(paths, args, signal, extra.env);
  const { stdout } = await runProgram(argv, {
    ...options,
    ...(extra.input === undefined ? {} : { input: extra.input }),
  });
  return stdout.trim();
}

/** For an answer that is read as a stream. */
export function gitProgram(
  { scratch, workspace }: WorkspacePaths,
  args: readonly string[],
  signal: AbortSignal,
  env: Readonly<Record<string, string>> = {},
): { argv: Argv; options: ProgramOptions } {
  const own = join(scratch, 'git');
  const places = { GIT_DIR: own, GIT_WORK_TREE: workspace, GIT_INDEX_FILE: join(own, 'index') };
  return {
    argv: withOpenUmask('git', ...settings, ...args),
    options: { signal, timeoutMs: gitTimeoutMs, cwd: workspace, env: { ...closedEnv, ...places, ...env } },
  };
}

/** Git on the workspace's own `.git`: only for moving HEAD, and only where nothing in it is a link to elsewhere. */
export async function moveHead(
  workspace: string,
  { from, to }: { from: string; to: string },
  signal: AbortSignal,
): Promise<void> {
  const directory = await requireGitDir(workspace);
  const args = [`--git-dir=${directory}`, '-c', 'core.logAllRefUpdates=false', 'update-ref', 'HEAD', to, from];
  await runProgram(withOpenUmask('git', ...settings, ...args), {
    ...{ signal, timeoutMs: gitTimeoutMs, cwd: '/', env: closedEnv },
  });
}

/** Throws StepError where git, writing there as root, would write to another place. */
export async function requirePlainGitDir(directory: string): Promise<void> {
  for (const name of ['.', 'HEAD', 'index', 'packed-refs', 'config', 'objects', 'objects/pack', 'refs', 'logs']) {
    const path = join(directory, name);
    const about = await lstat(path).catch(() => undefined);
    if (about === undefined) continue;
    const isTree = name === 'refs' || name === 'logs';
    if (isTree && about.isDirectory()) await requirePlainTree(path);
    else if (!(about.isDirectory() || about.isFile())) throw notPlain(path);
  }
}

async function requirePlainTree(directory: string): Promise<void> {
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) await requirePlainTree(path);
    else if (!entry.isFile()) throw notPlain(path);
  }
}

function notPlain(path: string): StepError {
  return new StepError(`cannot write to the repository: ${JSON.stringify(path)} is neither file nor directory`);
}
