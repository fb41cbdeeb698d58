// The outbox: results until whoever sends them has been told that they arrived. The name of a result is as old as the result, and
// its text never changes, so that sending one twice is sending it once.
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseEventFileName } from '../deploy-runner/event.ts';
import { systemErrorCode } from '../errors.ts';
import { writeFileAtomic } from '../state/atomic-file.ts';
import { syncDirectory } from '../state/directory.ts';
import { readDocument, writeDocument } from '../state/document.ts';
import { fileError } from '../state/file-error.ts';
import { eventClockDocument } from './documents.ts';
import type { MarkerContext } from './markers.ts';
import { actionPlaces } from './places.ts';

type Paths = MarkerContext['paths'];

/** Durable when it returns. Again does no harm. */
export async function putResult({ paths }: { paths: Paths }, name: string, text: string): Promise<void> {
  await writeFileAtomic(join(actionPlaces(paths).outbox, name), text);
}

/** Names, oldest first. */
export async function listResults({ paths }: { paths: Paths }): Promise<string[]> {
  const { outbox } = actionPlaces(paths);
  try {
    const names = await readdir(outbox);
    return names.filter((name) => parseEventFileName(name) !== undefined).sort();
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw fileError('read', outbox, error);
  }
}

/** Only what is known to have arrived, whole. */
export async function removeResults({ paths }: { paths: Paths }, names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  const { outbox } = actionPlaces(paths);
  try {
    for (const name of names) await rm(join(outbox, name), { force: true });
    await syncDirectory(outbox);
  } catch (error) {
    throw fileError('remove results from', outbox, error);
  }
}

/** Readers go by the names' order: a clock that was set back must not make a result older than the ones before. */
export async function takeEventTime({ paths, clock, log }: MarkerContext): Promise<number> {
  const { eventClock } = actionPlaces(paths);
  const now = clock.now();
  const read = await readDocument(eventClock, eventClockDocument, { now, log });
  const last = read.kind === 'ok' || read.kind === 'recovered' ? read.value.epochMs : 0;
  const epochMs = Math.max(now.getTime(), last + 1);
  await writeDocument(eventClock, eventClockDocument, { epochMs });
  return epochMs;
}
