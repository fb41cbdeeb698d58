// The repository in a workspace, which a job's container may have made of it what it liked. Nothing here runs a program and
// nothing follows a link: what is not as git makes it is refused.
import { constants } from 'node:fs';
import { lstat, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { InputError, systemErrorCode } from '../../errors.ts';
import { fileError } from '../../state/file-error.ts';
import { findPackedRef, type Head, isRefName, parseHead } from './head.ts';

/** Beyond it a file of the repository's own is not read: packed refs of a hundred thousand branches fit. */
const maxFileBytes = 16 * 1024 * 1024;

/** The commit of HEAD, and the branch that HEAD is on. Throws InputError where it has none. */
export async function readHead(workspace: string): Promise<Head> {
  const git = join(workspace, '.git');
  await requireDirectory(git);
  const head = parseHead((await readPlainFile(join(git, 'HEAD'))) ?? '');
  if (head === undefined)
    throw new InputError(`cannot read HEAD of "${workspace}": it is neither a branch nor a commit`);
  if (head.kind === 'commit') return { commit: head.commit };
  const loose = await readRef(git, head.ref);
  const commit = loose ?? findPackedRef((await readPlainFile(join(git, 'packed-refs'))) ?? '', head.ref);
  if (commit === undefined)
    throw new InputError(`cannot read HEAD of "${workspace}": ${head.ref} has no commit`);
  return { commit, ref: head.ref };
}

async function readRef(git: string, ref: string): Promise<string | undefined> {
  if (!isRefName(ref)) throw new InputError(`cannot read ${JSON.stringify(ref)}: no branch is called so`);
  let directory = git;
  for (const part of ref.split('/').slice(0, -1)) {
    directory = join(directory, part);
    if (!(await isDirectory(directory))) return undefined;
  }
  const text = await readPlainFile(join(git, ref));
  return text === undefined ? undefined : /^[0-9a-f]{40}$/.exec(text.trim())?.[0];
}

/** Its objects are its own: a link or an alternate would show us, and so the server, those of another repository. */
export async function requireOwnObjects(workspace: string): Promise<void> {
  const objects = join(workspace, '.git', 'objects');
  await requireDirectory(join(workspace, '.git'));
  await requireDirectory(objects);
  for (const name of await readdir(objects)) {
    await requireDirectory(join(objects, name));
    if (name === 'pack' || name === 'info') await requirePlainObjects(join(objects, name));
  }
}

async function requirePlainObjects(directory: string): Promise<void> {
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (!entry.isFile() && !entry.isDirectory())
      throw new InputError(`cannot use "${path}": it is no plain file`);
    if (entry.name.endsWith('alternates'))
      throw new InputError(`cannot use "${path}": the repository borrows objects from another one`);
  }
}

async function requireDirectory(path: string): Promise<void> {
  if (!(await isDirectory(path))) throw new InputError(`cannot use "${path}": it is no directory`);
}

export async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isDirectory();
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(systemErrorCode(error) ?? '')) return false;
    throw fileError('read', path, error);
  }
}

/** Undefined where there is none, or a link, a pipe or the like in its place. */
export async function readPlainFile(path: string): Promise<string | undefined> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  try {
    const handle = await open(path, flags);
    try {
      const about = await handle.stat();
      return about.isFile() && about.size <= maxFileBytes ? await handle.readFile('utf8') : undefined;
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO'].includes(systemErrorCode(error) ?? '')) return undefined;
    throw fileError('read', path, error);
  }
}

/** Whoever writes at this way below the repository writes there and nowhere else. What is missing on it can be made. */
export async function requirePlainWay(git: string, way: string): Promise<void> {
  let path = git;
  await requireDirectory(path);
  const parts = way.split('/');
  for (const [index, part] of parts.entries()) {
    path = join(path, part);
    const about = await lstat(path).catch(() => undefined);
    if (about === undefined) return;
    const isLast = index === parts.length - 1;
    if (!(about.isDirectory() || (isLast && about.isFile()))) {
      throw new InputError(`cannot write "${path}": it is neither file nor directory`);
    }
  }
}
