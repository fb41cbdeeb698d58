// Moves an action from one directory to another. Its file is renamed, so that at any instant it is in exactly one of them, and of
// several that move it one succeeds, ours or not. What the move adds to it lies ready beside the target before, and is put in its
// place after; a move that was killed in between is finished, or undone, by the next. Assumes that the lock `action` is held.
import { createHash } from 'node:crypto';
import { readdir, rename } from 'node:fs/promises';
import type { FoundFile } from '../actions/control/found.ts';
import { readAction } from '../actions/control/tree.ts';
import { type OpenedEntry, openEntry } from '../actions/open.ts';
import { type Action, parseAction } from '../deploy-runner/action.ts';
import { findApproval, markerKey } from '../deploy-runner/key.ts';
import type { ActionState } from '../deploy-runner/layout.ts';
import { actionFileName, maxActionBytes } from '../deploy-runner/names.ts';
import { describeError, InputError, ReeveError, systemErrorCode } from '../errors.ts';
import { fileError } from '../state/file-error.ts';
import { type HeldDirectory, withDirectory } from '../state/held-directory.ts';
import {
  ignoreMissing,
  isThere,
  makeDirectory,
  removeDispatched,
  unlinkIfThere,
  writeDispatched,
  writeWhole,
} from './files.ts';
import { renameToFree } from './rename.ts';

export type Move = {
  root: string;
  found: FoundFile;
  to: ActionState;
  /** What the file says from then on; its own bytes where it stays as it is. */
  text?: string;
  /** It is no action, so it replaces none. */
  isUnread?: true;
  /** The node that is given the file's own bytes before the action has gone on, and not unless it goes on. */
  handOver?: string;
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

async function moveBetween(source: HeldDirectory, target: HeldDirectory, move: Move): Promise<MoveEnd> {
  const { root, found, to, text } = move;
  const name = actionFileName(found.id);
  if (!finalStates.has(to) && (await isThere(target, name))) return 'taken';
  const { id, state: from } = found;
  const staged: Staged = { id, from, digest: digestOf(found.bytes), text: text ?? found.bytes };
  await writeWhole(target, stagedName(staged), staged.text, found.about);
  await handOver(target, move).catch(async (error: unknown) => {
    await takeBack(root, target, staged).catch(() => {});
    throw error;
  });
  // What fails from here on is for the next run to find out about: it may have happened all the same.
  const end = finalStates.has(to)
    ? await renameToEnd(source, target, move)
    : await renameOnly(source, target, found);
  if (end !== 'moved') await takeBack(root, target, staged);
  else if (text !== undefined) await rename(target.at(stagedName(staged)), target.at(name));
  else await unlinkIfThere(target, stagedName(staged));
  await target.handle.sync();
  await source.handle.sync();
  return end;
}

async function handOver(target: HeldDirectory, { root, found, handOver: node }: Move): Promise<void> {
  if (node === undefined) return;
  // What is staged is what a run after a kill knows of the node's file by.
  await target.handle.sync();
  await writeDispatched({ root, node, id: found.id }, found.bytes);
}

/** Ready to take the place of the file that has these bytes. */
type Staged = { id: string; from: ActionState; digest: string; text: string | Buffer };

function stagedName({ id, from, digest }: Omit<Staged, 'text'>): string {
  return `.reeve-move-${id}-${from}-${digest}`;
}

/** What has not gone on is at no node either, unless somebody else has dispatched the very same approval. */
async function takeBack(root: string, target: HeldDirectory, staged: Staged): Promise<void> {
  const { id, digest } = staged;
  const meant = parseStaged(staged);
  if (meant !== undefined) {
    const running = await readAction(root, 'running', id);
    const isRunning = running?.kind === 'action' && approvalKey(running) === approvalKey(meant);
    const file = { root, node: meant.action.node, id };
    if (!isRunning) await removeDispatched(file, (bytes) => digestOf(bytes) === digest);
  }
  await unlinkIfThere(target, stagedName(staged));
}

/** Undefined for what was going elsewhere than to its node. */
function parseStaged({ text }: Staged): { action: Action; bytes: Buffer } | undefined {
  try {
    const bytes = Buffer.from(text);
    const action = parseAction(bytes);
    return action.transitions.at(-1)?.to === 'running' ? { action, bytes } : undefined;
  } catch (error) {
    if (error instanceof InputError) return undefined;
    throw error;
  }
}

function approvalKey({ action, bytes }: { action: Action; bytes: Buffer }): string | undefined {
  return findApproval(action) === undefined ? undefined : markerKey(action, bytes);
}

async function renameOnly(source: HeldDirectory, target: HeldDirectory, found: FoundFile): Promise<MoveEnd> {
  const name = actionFileName(found.id);
  const end = await renameToFree(source, target, name);
  if (end !== 'renamed') return end;
  if (await hasBytes(target, name, found.bytes)) return 'moved';
  await putBack(target, source, found.id);
  return 'changed';
}

/** Not by its number: the next file may have that of one that was removed. */
async function hasBytes(directory: HeldDirectory, name: string, bytes: Buffer): Promise<boolean> {
  const opened = await openFrom(directory, name);
  return opened.kind === 'file' && opened.bytes.equals(bytes);
}

/**
 * Between the reading and the renaming anybody may have written another one, which goes back unseen. Where there is a third by then, its
 * writer has meant to replace that other one.
 */
async function putBack(target: HeldDirectory, source: HeldDirectory, id: string): Promise<void> {
  const name = actionFileName(id);
  if ((await renameToFree(target, source, name)) === 'taken') await unlinkIfThere(target, name);
}

/** A later action of an id takes the place of an earlier one. What is no action at all does not: it comes to lie beside it. */
async function renameToEnd(
  source: HeldDirectory,
  target: HeldDirectory,
  { found, isUnread }: Move,
): Promise<MoveEnd> {
  const name = actionFileName(found.id);
  const isAside = isUnread === true && (await isThere(target, name));
  const to = isAside ? `${found.id}.unread-${digestOf(found.bytes).slice(0, 16)}` : name;
  if (!(await renameIfThere(source.at(name), target.at(to)))) return 'gone';
  if (await hasBytes(target, to, found.bytes)) return 'moved';
  if (!isAside) await putBack(target, source, found.id);
  return 'changed';
}

const stagedPattern = /^\.reeve-move-([a-z0-9][a-z0-9-]{0,63})-(pending|approved|running)-([0-9a-f]{64})$/;
const partPattern = /^\.reeve-part-reeve-move-/;
const targets: readonly ActionState[] = ['approved', 'rejected', 'running', 'completed', 'failed'];

/**
 * Gives what a killed move has moved what it was to say; what it has not moved stays where it was, and is at no node. Returns what it
 * could not do, which keeps nothing else from its way.
 */
export async function finishMoves(root: string): Promise<string[]> {
  const troubles: string[] = [];
  for (const state of targets) {
    const finish = (directory: HeldDirectory): Promise<void> =>
      finishIn({ root, state, directory }, troubles);
    await tryTo(() => withDirectory(root, [state], finish).catch(ignoreMissing), troubles);
  }
  return troubles;
}

type Place = { root: string; state: ActionState; directory: HeldDirectory };

async function finishIn(place: Place, troubles: string[]): Promise<void> {
  const { directory } = place;
  const names = await readdir(directory.at()).catch((error: unknown) => {
    throw fileError('read', directory.path, error);
  });
  for (const name of names) {
    const finish = async (): Promise<void> => {
      if (partPattern.test(name)) await unlinkIfThere(directory, name);
      if (stagedPattern.test(name)) await finishMove(place, name);
    };
    const tell = (error: unknown): never => {
      throw fileError('finish', `${directory.path}/${name}`, error);
    };
    await tryTo(() => finish().catch(tell), troubles);
  }
}

async function tryTo(work: () => Promise<void>, troubles: string[]): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof ReeveError)) throw error;
    troubles.push(describeError(error));
  }
}

async function finishMove(place: Place, name: string): Promise<void> {
  const { root, directory } = place;
  const [, id = '', from = '', digest = ''] = stagedPattern.exec(name) ?? [];
  const target = actionFileName(id);
  const present = await openFrom(directory, target);
  const staged = await openFrom(directory, name);
  if (staged.kind !== 'file') await unlinkIfThere(directory, name);
  else if (present.kind === 'file' && digestOf(present.bytes) === digest)
    await rename(directory.at(name), directory.at(target));
  else {
    const about: Staged = { id, from: from as ActionState, digest, text: staged.bytes };
    if (present.kind === 'file') await returnUnseen(place, about, present.bytes);
    await takeBack(root, directory, about);
  }
  await directory.handle.sync();
}

/**
 * Killed between the moving of another one and its way back: that one still says where it belongs, and is not there. An earlier one that
 * has ended may say so as well, by others who move files alone: it stays, unless a person has to decide about it anyway.
 */
async function returnUnseen(
  { root, state, directory }: Place,
  { id, from }: Staged,
  bytes: Buffer,
): Promise<void> {
  if (readStatus(bytes) !== from || (finalStates.has(state) && from !== 'pending')) return;
  if ((await readAction(root, from, id)) !== undefined) return;
  await withDirectory(root, [from], (source) => putBack(directory, source, id));
}

function readStatus(bytes: Buffer): unknown {
  try {
    return (JSON.parse(bytes.toString('utf8')) as { status?: unknown } | null)?.status;
  } catch {
    return undefined;
  }
}

async function openFrom(directory: HeldDirectory, name: string): Promise<OpenedEntry> {
  return await openEntry(directory.at(name), maxActionBytes, `${directory.path}/${name}`);
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

async function renameIfThere(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return false;
    throw error;
  }
}
