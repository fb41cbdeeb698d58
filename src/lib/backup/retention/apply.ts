// Removes what retention has planned. What cannot be removed is told and left for the next time, and keeps nothing else.
import { renderDocument } from '../../cluster/wire.ts';
import { describeError } from '../../errors.ts';
import type { Store } from '../../store/store.ts';
import type { Removal } from './plan.ts';
import type { Decision } from './policy.ts';

export type RemovalResult =
  | { kind: 'dump'; stamp: string; decision: Decision; error?: string }
  /** All of the set's own files. */
  | { kind: 'set'; stamp: string; reason: string; error?: string };

/** Assumes the lock `backup`. `signal` ends it between two requests. */
export async function applyRemovals(
  store: Pick<Store, 'put' | 'delete'>,
  removals: readonly Removal[],
  signal: AbortSignal,
): Promise<RemovalResult[]> {
  const results: RemovalResult[] = [];
  for (const removal of removals) {
    if (signal.aborted) break;
    results.push(...(await applyRemoval(store, removal, signal)));
  }
  return results;
}

async function applyRemoval(
  store: Pick<Store, 'put' | 'delete'>,
  { stamp, note, dumps, files, filesReason }: Removal,
  signal: AbortSignal,
): Promise<RemovalResult[]> {
  const noteError = note && (await attempt(() => store.put(note.key, renderDocument(note.document))));
  if (noteError !== undefined)
    return dumps.map((decision) => ({ kind: 'dump', stamp, decision, error: noteError }));
  const results: RemovalResult[] = [];
  for (const decision of dumps) {
    if (signal.aborted) return results;
    const error = await attempt(() => store.delete(decision.dump.key));
    results.push({ kind: 'dump', stamp, decision, ...(error === undefined ? {} : { error }) });
  }
  const isEmptied = results.every(({ error }) => error === undefined);
  if (!isEmptied || files.length === 0 || signal.aborted) return results;
  const error = await removeFiles(store, files);
  return [...results, { kind: 'set', stamp, reason: filesReason, ...(error === undefined ? {} : { error }) }];
}

/** In their order: one that stays keeps what is to go after it. */
async function removeFiles(
  store: Pick<Store, 'delete'>,
  files: readonly string[],
): Promise<string | undefined> {
  for (const key of files) {
    const error = await attempt(() => store.delete(key));
    if (error !== undefined) return error;
  }
  return undefined;
}

async function attempt(act: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await act();
    return undefined;
  } catch (error) {
    return describeError(error);
  }
}
