// The outbox: results until whoever sends them has been told that they arrived. The name of a result is as old as the result, and
// its text never changes, so that sending one twice is sending it once.
import { link, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseEventFileName } from '../deploy-runner/event.ts';
import { describeError, ReeveError, StepError, systemErrorCode } from '../errors.ts';
import { writeFileAtomic } from '../state/atomic-file.ts';
import { syncDirectory } from '../state/directory.ts';
import { readDocument, writeDocument } from '../state/document.ts';
import { fileError } from '../state/file-error.ts';
import { discardStaging, newStagingPath } from '../state/staging.ts';
import { eventClockDocument } from './documents.ts';
import type { MarkerContext } from './markers.ts';
import { actionPlaces } from './places.ts';

type Paths = MarkerContext['paths'];

export type Result = { eventName: string; event: string };

/** The result is on disk when `work` begins, and has its name once it calls `put`: what fails for want of room has failed before. */
export async function withStagedResult<T>(
  { paths }: { paths: Paths },
  result: Result,
  work: (put: () => Promise<void>) => Promise<T>,
): Promise<T> {
  const staged = newStagingPath(actionPlaces(paths).outbox);
  try {
    await writeFileAtomic(staged, result.event);
    return await work(() => linkResult(paths, staged, result));
  } finally {
    await discardStaging(staged);
  }
}

/** Durable when it returns. Again does no harm. */
export async function putResult(ctx: { paths: Paths }, result: Result): Promise<void> {
  await withStagedResult(ctx, result, (put) => put());
}

/** Another result of that name is not overwritten. */
async function linkResult(paths: Paths, staged: string, { eventName, event }: Result): Promise<void> {
  const { outbox } = actionPlaces(paths);
  const path = join(outbox, eventName);
  try {
    await link(staged, path).catch(async (error: unknown) => {
      if (systemErrorCode(error) !== 'EEXIST') throw error;
      if ((await readFile(path, 'utf8')) === event) return;
      throw new StepError(`cannot write ${JSON.stringify(path)}: another result has its name`, {
        code: 'EEXIST',
      });
    });
    await syncDirectory(outbox);
  } catch (error) {
    throw error instanceof StepError ? error : fileError('write', path, error);
  }
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

const dayMs = 24 * 60 * 60_000;

/**
 * Readers go by the names' order: a clock that was set back must not make a result older than the ones before. One that was far ahead once
 * must not name all that comes for years to come: then it is the time that counts. Assumes the lock.
 */
export async function takeEventTime({ paths, clock, log }: MarkerContext): Promise<number> {
  const { eventClock } = actionPlaces(paths);
  const now = clock.now();
  const read = await readDocument(eventClock, eventClockDocument, { now, log }).catch((error: unknown) => {
    if (!(error instanceof ReeveError)) throw error;
    // A result leaves nevertheless.
    log.warning(`names of results go by the clock: ${describeError(error)}`);
    return undefined;
  });
  if (read === undefined) return now.getTime();
  const last = read.kind === 'ok' || read.kind === 'recovered' ? read.value.epochMs : 0;
  const isAhead = last > now.getTime() + dayMs;
  if (isAhead) {
    const wrong = new Date(last).toISOString();
    log.warning(
      `the last result has ${wrong} in its name, more than a day ahead: names go by the clock again`,
    );
  }
  const epochMs = isAhead ? now.getTime() : Math.max(now.getTime(), last + 1);
  await writeDocument(eventClock, eventClockDocument, { epochMs });
  return epochMs;
}
