// Moves an action from one directory to another. Its file is renamed, so that at any instant it is in exactly one of them, and of
// several that move it one succeeds, ours or not. What the move adds to it lies ready beside the target before, and is put in its
// place after; a move that was killed in between is finished, or undone, by the next. Assumes that the lock `action` is held.
import { createHash } from 'node:crypto';
import { readdir, rename } from 'node:fs/promises';
import { type OpenedEntry, openEntry } from '../actions/open.ts';
import type { ActionState } from '../deploy-runner/layout.ts';
import { actionFileName, maxActionBytes } from '../deploy-runner/names.ts';
import { systemErrorCode } from '../errors.ts';
import { fileError } from '../state/file-error.ts';
import { type HeldDirectory, withDirectory } from '../state/held-directory.ts';
import type { FoundFile } from './facts.ts';
import { ignoreMissing, isThere, lookAt, makeDirectory, unlinkIfThere, writeWhole } from './files.ts';

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

export async function moveAction(move: Move): Promise<MoveEnd> {
  const { root, found, to } = move;
  const within = (target: HeldDirectory): Promise<MoveEnd> =>
    withDirectory(root, [found.state], async (source) => {
      try {
        return await moveBetween(source, target, move);
      } catch (error) {
        throw fileError('move', `${source.path}/${actionFileName(found.id)}`, error);
      }
    });
  return await withDirectory(root, [to], within, makeDirectory);
}

async function moveBetween(
  source: HeldDirectory,
  target: HeldDirectory,
  { found, to, text }: Move,
): Promise<MoveEnd> {
  const name = actionFileName(found.id);
  const staged = stagedName(found);
  if (!finalStates.has(to) && (await isThere(target, name))) return 'taken';
  if (text !== undefined) await writeWhole(target, staged, text, found.about);
  const end = await renameOnly(source, target, found);
  if (end !== 'moved') {
    await unlinkIfThere(target, staged);
    return end;
  }
  if (text !== undefined) await rename(target.at(staged), target.at(name));
  await target.handle.sync();
  await source.handle.sync();
  return 'moved';
}

async function renameOnly(source: HeldDirectory, target: HeldDirectory, found: FoundFile): Promise<MoveEnd> {
  const name = actionFileName(found.id);
  if (!(await renameIfThere(source, target, name))) return 'gone';
  // Between the reading and the renaming anybody may have written another one.
  const moved = await lookAt(target, name);
  if (moved !== undefined && moved.ino === found.about.ino && moved.dev === found.about.dev) return 'moved';
  await renameIfThere(target, source, name);
  return 'changed';
}

const stagedPattern = /^\.reeve-move-([a-z0-9][a-z0-9-]{0,63})-([0-9a-f]{64})$/;
const partPattern = /^\.reeve-part-reeve-move-/;
const targets: readonly ActionState[] = ['approved', 'rejected', 'running', 'completed', 'failed'];

/** Gives what a killed move has moved what it was to say; what it has not moved stays where it was. */
export async function finishMoves(root: string): Promise<void> {
  for (const state of targets) await withDirectory(root, [state], finishIn).catch(ignoreMissing);
}

async function finishIn(directory: HeldDirectory): Promise<void> {
  try {
    const names = await readdir(directory.at());
    for (const name of names.filter((one) => partPattern.test(one))) await unlinkIfThere(directory, name);
    for (const name of names.filter((one) => stagedPattern.test(one))) await finishMove(directory, name);
  } catch (error) {
    throw fileError('finish moves in', directory.path, error);
  }
}

async function finishMove(directory: HeldDirectory, staged: string): Promise<void> {
  const [, id = '', digest] = stagedPattern.exec(staged) ?? [];
  const name = actionFileName(id);
  const opened = await openFrom(directory, name);
  if (opened.kind === 'file' && digestOf(opened.bytes) === digest)
    await rename(directory.at(staged), directory.at(name));
  else await unlinkIfThere(directory, staged);
  await directory.handle.sync();
}

async function openFrom(directory: HeldDirectory, name: string): Promise<OpenedEntry> {
  return await openEntry(directory.at(name), maxActionBytes, `${directory.path}/${name}`);
}

/** It says which bytes it takes the place of. */
function stagedName({ id, bytes }: FoundFile): string {
  return `.reeve-move-${id}-${digestOf(bytes)}`;
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

async function renameIfThere(source: HeldDirectory, target: HeldDirectory, name: string): Promise<boolean> {
  try {
    await rename(source.at(name), target.at(name));
    return true;
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return false;
    throw error;
  }
}
