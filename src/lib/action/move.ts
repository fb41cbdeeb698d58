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
  lookAt,
  makeDirectory,
  removeDispatched,
  unlinkIfThere,
  writeDispatched,
  writeWhole,
} from './files.ts';

export type Move = {
  root: string;
  found: FoundFile;
  to: ActionState;
  /** What the file says from then on; its own bytes where it stays as it is. */
  text?: string;
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
  const staged: Staged = { id: found.id, digest: digestOf(found.bytes), text: text ?? found.bytes };
  await writeWhole(target, stagedName(staged), staged.text, found.about);
  const end = await goOn(source, target, move).catch(async (error: unknown) => {
    await takeBack(root, target, staged).catch(() => {});
    throw error;
  });
  if (end !== 'moved') {
    await takeBack(root, target, staged);
    return end;
  }
  await rename(target.at(stagedName(staged)), target.at(name));
  await target.handle.sync();
  await source.handle.sync();
  return 'moved';
}

async function goOn(
  source: HeldDirectory,
  target: HeldDirectory,
  { root, found, handOver }: Move,
): Promise<MoveEnd> {
  if (handOver !== undefined) {
    // What is staged is what a run after a kill knows of the node's file by.
    await target.handle.sync();
    await writeDispatched({ root, node: handOver, id: found.id }, found.bytes);
  }
  return await renameOnly(source, target, found);
}

/** Ready to take the place of the file that has these bytes. */
type Staged = { id: string; digest: string; text: string | Buffer };

function stagedName({ id, digest }: Pick<Staged, 'id' | 'digest'>): string {
  return `.reeve-move-${id}-${digest}`;
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

/**
 * Gives what a killed move has moved what it was to say; what it has not moved stays where it was, and is at no node. Returns what it
 * could not do, which keeps nothing else from its way.
 */
export async function finishMoves(root: string): Promise<string[]> {
  const troubles: string[] = [];
  for (const state of targets) {
    const finish = (directory: HeldDirectory): Promise<void> => finishIn(root, directory, troubles);
    await tryTo(() => withDirectory(root, [state], finish).catch(ignoreMissing), troubles);
  }
  return troubles;
}

async function finishIn(root: string, directory: HeldDirectory, troubles: string[]): Promise<void> {
  const names = await readdir(directory.at()).catch((error: unknown) => {
    throw fileError('read', directory.path, error);
  });
  for (const name of names) {
    const finish = async (): Promise<void> => {
      if (partPattern.test(name)) await unlinkIfThere(directory, name);
      if (stagedPattern.test(name)) await finishMove(root, directory, name);
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

async function finishMove(root: string, directory: HeldDirectory, name: string): Promise<void> {
  const [, id = '', digest = ''] = stagedPattern.exec(name) ?? [];
  const target = actionFileName(id);
  const present = await openFrom(directory, target);
  const staged = await openFrom(directory, name);
  if (staged.kind === 'file' && present.kind === 'file' && digestOf(present.bytes) === digest)
    await rename(directory.at(name), directory.at(target));
  else if (staged.kind === 'file') await takeBack(root, directory, { id, digest, text: staged.bytes });
  else await unlinkIfThere(directory, name);
  await directory.handle.sync();
}

async function openFrom(directory: HeldDirectory, name: string): Promise<OpenedEntry> {
  return await openEntry(directory.at(name), maxActionBytes, `${directory.path}/${name}`);
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
