// What has ended last on the control host, by when its file came to lie there. Read-only.
import { lstat } from 'node:fs/promises';
import { type ActionState, actionStates } from '../../deploy-runner/layout.ts';
import { actionFileName, parseActionFileName } from '../../deploy-runner/names.ts';
import { systemErrorCode } from '../../errors.ts';
import { fileError } from '../../state/file-error.ts';
import { type HeldDirectory, withDirectory } from '../../state/held-directory.ts';
import { listEntries } from '../open.ts';
import { isOpen, readEnd } from './end.ts';
import { readAction } from './tree.ts';

export type LastEnded = {
  id: string;
  state: ActionState;
  /** An ISO instant: as its file tells, else when the file came there. */
  endedAt: string;
  by: string | null;
  reason: string | null;
};

/** Of each directory: to look at more is not worth it. */
const mostLooks = 2000;

/** Undefined where nothing has ended, or so much that nobody looks for it. */
export async function readLastEnded(root: string): Promise<LastEnded | undefined> {
  const ended = actionStates.filter((state) => !isOpen({ state }));
  const latest = await Promise.all(ended.map((state) => findLatest(root, state)));
  if (latest.includes('too-many')) return undefined;
  const [last] = latest.filter(isLatest).sort((a, b) => b.atMs - a.atMs);
  if (last === undefined) return undefined;
  const { id, state, atMs } = last;
  const found = await readAction(root, state, id);
  const end = found?.kind === 'action' ? readEnd(found) : undefined;
  // Whoever only moves a file leaves the time in it as it was.
  const told = end?.by === null ? undefined : end?.at;
  const endedAt = told ?? new Date(atMs).toISOString();
  return { id, state, endedAt, by: end?.by ?? null, reason: end?.reason ?? null };
}

type Latest = { id: string; state: ActionState; atMs: number };

function isLatest(one: Latest | 'too-many' | undefined): one is Latest {
  return one !== undefined && one !== 'too-many';
}

async function findLatest(root: string, state: ActionState): Promise<Latest | 'too-many' | undefined> {
  const look = async (directory: HeldDirectory): Promise<Latest | 'too-many' | undefined> => {
    const { names, isCut } = await listEntries(directory.at(), mostLooks, directory.path);
    if (isCut) return 'too-many';
    const ids = names.map(({ text }) => parseActionFileName(text)).filter((id) => id !== undefined);
    let latest: Latest | undefined;
    for (const id of ids) {
      const atMs = await changedAtMs(directory, id);
      if (atMs > (latest?.atMs ?? 0)) latest = { id, state, atMs };
    }
    return latest;
  };
  return await withDirectory(root, [state], look).catch((error: unknown) => {
    if (systemErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  });
}

/** A rename counts as a change. 0 where it is gone. */
async function changedAtMs(directory: HeldDirectory, id: string): Promise<number> {
  const name = actionFileName(id);
  try {
    return (await lstat(directory.at(name))).ctimeMs;
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return 0;
    throw fileError('read', `${directory.path}/${name}`, error);
  }
}
