// Git on a workspace that belongs to a stranger. Its own configuration is never read: we work from a git directory of ours, with an
// index of ours, and have of the workspace's repository only its objects. No hook, filter, monitor, driver or transport that
// somebody has written there is ever run.
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CommandError, StepError } from '../../errors.ts';
import { type Argv, type ProgramOptions, runProgram, streamProgram } from '../../exec/run.ts';
import { withOpenUmask } from './programs.ts';
import { requireOwnObjects } from './repository.ts';

export type GitContext = { signal: AbortSignal };

/** `git` is our own directory. */
export type GitPlace = { git: string; workspace: string };

type Extra = { input?: string; env?: Readonly<Record<string, string>> };

const gitMs = 30 * 60_000;

const settings = [
  ...['core.hooksPath=/dev/null', 'core.fsmonitor=false', 'core.attributesFile=/dev/null'],
  ...['core.excludesFile=/dev/null', 'core.untrackedCache=false', 'core.splitIndex=false', 'core.pager=cat'],
  ...['core.quotePath=true', 'core.autocrlf=false', 'core.safecrlf=false', 'commit.gpgSign=false'],
  ...['gc.auto=0', 'maintenance.auto=false', 'protocol.allow=never', 'advice.addEmbeddedRepo=false'],
].flatMap((setting) => ['-c', setting]);

const closedEnv = {
  ...{ LC_ALL: 'C', TZ: 'UTC', HOME: '/nonexistent', XDG_CONFIG_HOME: '/nonexistent' },
  ...{ GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_SYSTEM: '/dev/null', GIT_CONFIG_GLOBAL: '/dev/null' },
  ...{ GIT_ATTR_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0', GIT_ASKPASS: '/bin/false', GIT_PAGER: 'cat' },
  // No object is ever fetched, and none stands for another one.
  ...{ GIT_ALLOW_PROTOCOL: '', GIT_NO_LAZY_FETCH: '1', GIT_NO_REPLACE_OBJECTS: '1' },
};

/** Makes our directory, or makes it good again after a kill. Throws InputError for a repository with objects of another one. */
export async function openGit({ git, workspace }: GitPlace): Promise<void> {
  await requireOwnObjects(workspace);
  for (const name of ['objects/info', 'refs']) await mkdir(join(git, name), { recursive: true, mode: 0o700 });
  const files = {
    HEAD: 'ref: refs/heads/none\n',
    config: '[core]\n\trepositoryformatversion = 0\n\tbare = false\n',
    'objects/info/alternates': `${join(workspace, '.git/objects')}\n`,
  };
  for (const [name, content] of Object.entries(files))
    await writeFile(join(git, name), content, { mode: 0o600 });
  // Of a git that was killed: whoever works on the job holds its lock, so it is nobody's.
  await rm(join(git, 'index.lock'), { force: true });
}

export async function runGit(
  ctx: GitContext,
  place: GitPlace,
  args: readonly string[],
  extra: Extra = {},
): Promise<string> {
  return await readGit(...gitProgram(ctx, place, args, extra));
}

/** Its answer of one line. */
export async function askGit(
  ctx: GitContext,
  place: GitPlace,
  args: readonly string[],
  extra: Extra = {},
): Promise<string> {
  return (await runGit(ctx, place, args, extra)).trim();
}

export async function* streamGit(
  ctx: GitContext,
  place: GitPlace,
  args: readonly string[],
): AsyncGenerator<Uint8Array> {
  try {
    yield* streamProgram(...gitProgram(ctx, place, args, {}));
  } catch (error) {
    throw inItsWords(error);
  }
}

/**
 * Several commands of git in one process of ours, as starting one costs more than what most of them do. The script is constant:
 * `git "$@"` in it is git with its settings, and `$1` up to there are the words, which it has to shift away.
 */
export async function runGitScript(
  { signal }: GitContext,
  place: GitPlace,
  script: string,
  words: readonly string[],
): Promise<string> {
  const argv: Argv = ['sh', '-c', `umask 022\n${script}`, 'sh', ...words, ...settings];
  return await readGit(argv, gitOptions(signal, place));
}

async function readGit(argv: Argv, options: ProgramOptions): Promise<string> {
  try {
    return (await runProgram(argv, options)).stdout;
  } catch (error) {
    throw inItsWords(error);
  }
}

/** What git says of it, and not with which of its many words it was asked. */
function inItsWords(error: unknown): unknown {
  if (!(error instanceof CommandError) || error.code !== 'status') return error;
  const words = error.lastLines.match(/^(?:error|fatal): .+$/gm)?.map((line) => line.replace(/^\w+: /, ''));
  if (words === undefined) return error;
  return new StepError(`git cannot use the workspace: ${words.slice(0, 3).join('; ')}`, { cause: error });
}

function gitProgram(
  { signal }: GitContext,
  place: GitPlace,
  args: readonly string[],
  { input, env }: Extra,
): [Argv, ProgramOptions] {
  const options = gitOptions(signal, place, env);
  return [withOpenUmask('git', ...settings, ...args), input === undefined ? options : { ...options, input }];
}

function gitOptions(
  signal: AbortSignal,
  { git, workspace }: GitPlace,
  env: Extra['env'] = {},
): ProgramOptions {
  const places = { GIT_DIR: git, GIT_WORK_TREE: workspace, GIT_INDEX_FILE: join(git, 'index') };
  return { signal, timeoutMs: gitMs, cwd: workspace, env: { ...closedEnv, ...places, ...env } };
}
