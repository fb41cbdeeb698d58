// Moves an action from one directory to another. Its file is renamed, so that at any instant it is in exactly one of them, and of
// several that move it one succeeds, ours or not. What the move adds to it lies ready beside the target before, and is put in its
// place after; a move that was killed in between is finished, or undone, by the next. Assumes that the lock `action` is held.
import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import { chmod, chown, lchown, lstat, mkdtemp, readdir, rename, rmdir, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { openEntry } from '../actions/open.ts';
import { type ActionState, stateDirectory, statePath } from '../deploy-runner/layout.ts';
import { actionFileName } from '../deploy-runner/names.ts';
import { systemErrorCode } from '../errors.ts';
import { writeFileAtomic } from '../state/atomic-file.ts';
import { syncDirectory } from '../state/directory.ts';
import { fileError } from '../state/file-error.ts';
import type { FoundFile } from './facts.ts';

export type Move = {
  root: string;
  found: FoundFile;
  to: ActionState;
  /** What the file says from then on; its own bytes where it stays as it is. */
  text?: string;
};

export type MoveEnd =
  | 'moved'
  /** Somebody else has moved it. */
  | 'gone'
  /** Somebody else has written another one, which is where it was. */
  | 'changed'
  /** There is one of the same id already. */
  | 'taken';

/** Where an earlier action of the same id may lie for good, and makes room for a later one. */
const finalStates: ReadonlySet<ActionState> = new Set(['rejected', 'completed', 'failed', 'cancelled']);

export async function moveAction({ root, found, to, text }: Move): Promise<MoveEnd> {
  const [source, target] = [statePath(root, found.state, found.id), statePath(root, to, found.id)];
  const staged = stagedPath(root, to, found);
  try {
    await makeDirectory(dirname(target));
    if (!finalStates.has(to) && (await isThere(target))) return 'taken';
    if (text !== undefined) await writeLike(staged, text, found.about);
    if (!(await renameIfThere(source, target))) return await undo(staged, 'gone');
    // Between the reading and the renaming anybody may have written another one.
    const moved = await lstat(target);
    if (moved.ino !== found.about.ino || moved.dev !== found.about.dev) {
      await renameIfThere(target, source);
      return await undo(staged, 'changed');
    }
    if (text !== undefined) await rename(staged, target);
    await syncDirectory(dirname(target));
    await syncDirectory(dirname(source));
    return 'moved';
  } catch (error) {
    throw fileError('move', source, error);
  }
}

/** Where something other than a file lies under an action's name: as it is. */
async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return false;
    throw error;
  }
}

const stagedPattern = /^\.reeve-move-([a-z0-9][a-z0-9-]{0,63})-([0-9a-f]{64})$/;
const targets: readonly ActionState[] = ['approved', 'rejected', 'running', 'completed', 'failed'];

/** Gives what a killed move has moved what it was to say; what it has not moved stays where it was. */
export async function finishMoves(root: string): Promise<void> {
  for (const state of targets) {
    const directory = stateDirectory(root, state);
    try {
      const staged = (await readdir(directory)).filter((name) => stagedPattern.test(name));
      for (const name of staged) await finishMove(directory, name);
    } catch (error) {
      if (systemErrorCode(error) !== 'ENOENT') throw fileError('read', directory, error);
    }
  }
}

async function finishMove(directory: string, name: string): Promise<void> {
  const [, id = '', digest] = stagedPattern.exec(name) ?? [];
  const target = join(directory, actionFileName(id));
  const opened = await openEntry(target);
  if (opened.kind === 'file' && digestOf(opened.bytes) === digest)
    await rename(join(directory, name), target);
  else await unlink(join(directory, name));
  await syncDirectory(directory);
}

/** Its name says which bytes it takes the place of. */
function stagedPath(root: string, to: ActionState, { id, bytes }: FoundFile): string {
  return join(stateDirectory(root, to), `.reeve-move-${id}-${digestOf(bytes)}`);
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

async function undo<T>(staged: string, end: T): Promise<T> {
  await unlink(staged).catch((error: unknown) => {
    if (systemErrorCode(error) !== 'ENOENT') throw error;
  });
  return end;
}

async function renameIfThere(source: string, target: string): Promise<boolean> {
  try {
    await rename(source, target);
    return true;
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return false;
    throw error;
  }
}

/** Others read and move these files under users of their own: what takes a file's place has its owner and its mode. */
async function writeLike(path: string, text: string, { mode, uid, gid }: Stats): Promise<void> {
  await writeFileAtomic(path, text, { mode: mode & 0o777, makeDirectory: false });
  await lchown(path, uid, gid).catch(ignoreForeignOwner);
}

/** With the owner and the mode of the one that it is made in, from the moment that it is there. */
async function makeDirectory(path: string): Promise<void> {
  if (await isThere(path)) return;
  const parent = dirname(path);
  const staged = await mkdtemp(join(parent, '.reeve-directory-'));
  try {
    const { mode, uid, gid } = await stat(parent);
    await chown(staged, uid, gid).catch(ignoreForeignOwner);
    await chmod(staged, mode & 0o7777);
    await rename(staged, path);
    await syncDirectory(parent);
  } catch (error) {
    await rmdir(staged).catch(() => {});
    if (!(await isThere(path))) throw error;
  }
}

/** Only root gives files away. */
function ignoreForeignOwner(error: unknown): void {
  if (systemErrorCode(error) !== 'EPERM') throw error;
}

/** The file that a node pulls, with exactly these bytes. Nothing is written where they are there. */
export async function writeDispatched(path: string, bytes: Buffer): Promise<void> {
  try {
    await makeDirectory(dirname(dirname(path)));
    await makeDirectory(dirname(path));
    const present = await openEntry(path);
    if (present.kind === 'file' && present.bytes.equals(bytes)) return;
    // Whoever fetches it for the node is another user, and there is nothing secret in it.
    await writeFileAtomic(path, bytes, { mode: 0o644, makeDirectory: false });
  } catch (error) {
    throw fileError('write', path, error);
  }
}

/** What no node is to begin any more. */
export async function removeDispatched(path: string): Promise<void> {
  try {
    await unlink(path);
    await syncDirectory(dirname(path));
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw fileError('remove', path, error);
  }
}
