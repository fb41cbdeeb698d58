// Reads the directories of the control side, which others fill as well: nothing is followed, nothing hangs.
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { parseAction } from '../../deploy-runner/action.ts';
import { type ActionState, actionStates, deployNames, deployRoot } from '../../deploy-runner/layout.ts';
import {
  actionFileName,
  maxActionBytes,
  nodeNamePattern,
  parseActionFileName,
} from '../../deploy-runner/names.ts';
import { describeError, InputError, systemErrorCode } from '../../errors.ts';
import { type HeldDirectory, withDirectory } from '../../state/held-directory.ts';
import { listEntries, mostNames, type OpenedEntry, openEntry } from '../open.ts';
import type { Found, FoundState, Handed } from './found.ts';

/** More is no list of work for people; the executor comes again. */
const mostActions = 5000;

export async function readState(root: string, state: ActionState): Promise<FoundState> {
  const read = async (directory: HeldDirectory): Promise<FoundState> => {
    const listed = await listEntries(directory.at(), mostNames, directory.path);
    // What begins with a dot is on its way.
    const names = listed.names.filter(({ text }) => !text.startsWith('.'));
    const ids = names.map(({ text }) => parseActionFileName(text)).filter((id) => id !== undefined);
    const found: Found[] = [];
    for (const id of ids.sort().slice(0, mostActions)) {
      const one = await readFrom(directory, state, id);
      if (one !== undefined) found.push(one);
    }
    return { found, foreign: names.length - ids.length, isCut: listed.isCut || ids.length > mostActions };
  };
  return (await inState(root, state, read)) ?? { found: [], foreign: 0, isCut: false };
}

/** How many names in it are actions'. */
export async function countActions(root: string, state: ActionState): Promise<number> {
  const count = async (directory: HeldDirectory): Promise<number> => {
    const { names } = await listEntries(directory.at(), mostNames, directory.path);
    return names.filter(({ text }) => parseActionFileName(text) !== undefined).length;
  };
  return (await inState(root, state, count)) ?? 0;
}

/** Undefined where there is none. Assumes a checked id. */
export async function readAction(root: string, state: ActionState, id: string): Promise<Found | undefined> {
  return await inState(root, state, (directory) => readFrom(directory, state, id));
}

/** Undefined without the directory. */
async function inState<T>(
  root: string,
  state: ActionState,
  work: (directory: HeldDirectory) => Promise<T>,
): Promise<T | undefined> {
  return await ifThere(withDirectory(root, [state], work));
}

async function ifThere<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function readFrom(
  directory: HeldDirectory,
  state: ActionState,
  id: string,
): Promise<Found | undefined> {
  const name = actionFileName(id);
  return toFound(state, id, await openEntry(directory.at(name), maxActionBytes, `${directory.path}/${name}`));
}

/** Whoever keeps moving it for longer is not waited for. */
const mostReadings = 10;

/**
 * The action in every directory where there is one of its id. Read again until it was twice the same: what is moved meanwhile may have
 * been seen in neither directory, or in both.
 */
export async function readEverywhere(root: string, id: string): Promise<Found[]> {
  let found = await readEach(root, id);
  for (let readings = 1; readings < mostReadings; readings += 1) {
    const before = found;
    found = await readEach(root, id);
    if (isSame(found, before)) break;
  }
  return found;
}

async function readEach(root: string, id: string): Promise<Found[]> {
  const found = await Promise.all(actionStates.map((state) => readAction(root, state, id)));
  return found.filter((one) => one !== undefined);
}

function isSame(found: readonly Found[], before: readonly Found[]): boolean {
  return isDeepStrictEqual(found.map(readIdentity), before.map(readIdentity));
}

function readIdentity(found: Found): unknown[] {
  return [found.state, found.kind, 'bytes' in found ? found.bytes : undefined];
}

/** The nodes that have, or have had, something to pull. */
export async function readNodes(root: string): Promise<string[]> {
  const read = async (directory: HeldDirectory): Promise<string[]> => {
    const { names } = await listEntries(directory.at(), mostNames, directory.path);
    return names.map(({ text }) => text).filter((name) => nodeNamePattern.test(name));
  };
  return (await ifThere(withDirectory(root, deployRoot, read))) ?? [];
}

/** What is an action; the rest is nobody's word. */
export async function readHanded(root: string, node: string): Promise<Handed[]> {
  const read = async (directory: HeldDirectory): Promise<Handed[]> => {
    const { names } = await listEntries(directory.at(), mostNames, directory.path);
    const ids = names.map(({ text }) => parseActionFileName(text)).filter((id) => id !== undefined);
    const handed: Handed[] = [];
    for (const id of ids.slice(0, mostActions)) {
      const found = await readFrom(directory, 'running', id);
      if (found?.kind === 'action') handed.push({ node, id, action: found.action, bytes: found.bytes });
    }
    return handed;
  };
  return (await ifThere(withDirectory(root, deployNames(node), read))) ?? [];
}

function toFound(state: ActionState, id: string, opened: OpenedEntry): Found | undefined {
  if (opened.kind === 'gone') return undefined;
  if (opened.kind === 'refused') return { kind: 'refused', state, id, reason: opened.reason, isFile: false };
  const { bytes, about } = opened;
  try {
    const action = parseAction(bytes);
    if (action.actionId === id) return { kind: 'action', state, id, action, bytes, about };
    const reason = `its action_id is ${JSON.stringify(action.actionId)}, unlike the name of its file`;
    return { kind: 'refused', state, id, reason, isFile: true, bytes, about };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { kind: 'refused', state, id, reason: describeError(error), isFile: true, bytes, about };
  }
}

/** For messages. */
export function placeOf({ state, id }: { state: ActionState; id: string }): string {
  return join(state, `${id}.json`);
}
