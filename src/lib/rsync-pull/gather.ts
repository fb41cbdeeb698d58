// Reads what the mirror has, and what this node knows of it. What cannot be read is told, and stays for the next pull.
import { lstat } from 'node:fs/promises';
import { type Entry, readEntry } from '../actions/entry.ts';
import { hasMarker, type MarkerContext } from '../actions/markers.ts';
import { type EntryName, listEntries } from '../actions/open.ts';
import { actionPlaces } from '../actions/places.ts';
import { countRecent, type Refusal } from '../actions/refusals.ts';
import { listResults } from '../actions/spool.ts';
import { mapBounded } from '../bounded.ts';
import { contentKey } from '../deploy-runner/key.ts';
import { ReeveError } from '../errors.ts';
import type { LeftEntry, PulledEntry, PullFacts } from './facts.ts';
import { identifyLeft } from './keys.ts';
import { mostEntries, mostWaiting } from './limits.ts';

const readsAtOnce = 16;

export type Gathered = { entries: readonly PulledEntry[]; errors: readonly ReeveError[] };

export async function gatherMirror(ctx: MarkerContext): Promise<Gathered> {
  const { staging, inbox } = actionPlaces(ctx.paths);
  const { names } = await listEntries(staging, mostEntries);
  const entries: PulledEntry[] = [];
  const errors: ReeveError[] = [];
  for (const name of names) {
    try {
      const entry = await readPulled(name);
      if (entry !== undefined) entries.push(await lookAt(ctx, inbox, entry));
    } catch (error) {
      if (!(error instanceof ReeveError)) throw error;
      errors.push(error);
    }
  }
  return { entries, errors };
}

async function readPulled(name: EntryName): Promise<Entry | undefined> {
  const about = await lstat(name.path).catch(() => undefined);
  if (about?.isDirectory() === true) return toForeign(name);
  const entry = await readEntry(name);
  if (entry?.kind !== 'refused' || about === undefined) return entry;
  // It has the time that it has at the source: what is put there again is refused again, though it says the same.
  return { ...entry, key: contentKey(entry.actionId, `${entry.key} of ${about.mtimeMs}`) };
}

/** Whether they were refused before. */
export async function gatherLeft(ctx: MarkerContext, left: readonly LeftEntry[]): Promise<LeftEntry[]> {
  return await mapBounded(left, readsAtOnce, async (entry) => {
    const about = identifyLeft(entry);
    return about === undefined ? entry : { ...entry, isKnown: await hasMarker(ctx, about.key) };
  });
}

export async function countWaiting(
  ctx: MarkerContext,
  refusals: readonly Refusal[],
): Promise<PullFacts['waiting']> {
  const { names } = await listEntries(actionPlaces(ctx.paths).inbox, mostWaiting);
  const results = await listResults(ctx);
  return {
    ...{ actions: names.length, results: results.length },
    refused: countRecent(refusals, ctx.clock.now()),
  };
}

/** It is made anew by each pull: whoever waits for its name is told by what rsync says of the source. */
function toForeign(name: EntryName): Entry {
  return { kind: 'foreign', name, reason: 'it is a directory' };
}

async function lookAt(ctx: MarkerContext, inbox: string, entry: Entry): Promise<PulledEntry> {
  if (entry.kind === 'foreign') return { entry, isKnown: false, isWaiting: false };
  // In this order: what leaves the inbox has its marker before.
  const isWaiting = await isInInbox(inbox, entry);
  return { entry, isWaiting, isKnown: !isWaiting && (await hasMarker(ctx, entry.key)) };
}

async function isInInbox(inbox: string, { name: { text }, key }: Exclude<Entry, { kind: 'foreign' }>) {
  const name: EntryName = { text, path: Buffer.from(`${inbox}/${text}`) };
  const waiting = await readEntry(name);
  return waiting !== undefined && waiting.kind !== 'foreign' && waiting.key === key;
}
