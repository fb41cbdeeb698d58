// Names and ids that may become paths, keys or arguments. Nothing else may.
import { createHash } from 'node:crypto';

/** Project and service names. */
export const namePattern = /^[a-z0-9][a-z0-9-]{0,39}$/;

/** Ids of nodes and clusters: they become path components of a store. */
export const nodeIdPattern = /^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$/;

/** Ids from outside that may name a unit or a file as they stand. */
export const externalIdPattern = /^[A-Za-z0-9_-]{1,64}$/;

/** A new run id: sortable by time to the second, unique enough for one node's journal. */
export function newRunId(now: Date): string {
  const seconds = Math.floor(now.getTime() / 1000).toString(36);
  // Nobody guesses or forges a run id: no reason to load node:crypto, which costs 5 ms at every start.
  const random = Math.floor(Math.random() * 0x1000000);
  return `${seconds}-${random.toString(16).padStart(6, '0')}`;
}

/** An id from outside as a file or unit name: itself where it is harmless, else its sha256. */
export function safeFileId(id: string): string {
  if (externalIdPattern.test(id)) return id;
  return createHash('sha256').update(id).digest('hex');
}
