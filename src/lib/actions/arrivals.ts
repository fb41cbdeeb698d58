// When an action was handed over into the inbox. How long it waits says whether it is still begun, so that this goes by the clock that
// nobody sets; the time of its file tells where there is no note.
import { link, lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { actionIdOf, markerKeyPattern } from '../deploy-runner/key.ts';
import { parseActionFileName } from '../deploy-runner/names.ts';
import { describeError, InternalError, systemErrorCode } from '../errors.ts';
import { elapsedMs, type Moment, readMoment } from '../host/moment.ts';
import { writeFileAtomic } from '../state/atomic-file.ts';
import { ensureDirectory, syncDirectory } from '../state/directory.ts';
import { defineDocument, readDocument, renderStateDocument } from '../state/document.ts';
import { fileError } from '../state/file-error.ts';
import { isRecord } from '../state/shape.ts';
import { discardStaging, newStagingPath } from '../state/staging.ts';
import type { MarkerContext } from './markers.ts';
import type { EntryName } from './open.ts';
import { actionPlaces } from './places.ts';

/** Before the action is put into the inbox. The first time stays: what comes again waits for as long. */
export async function noteArrival({ paths, clock }: MarkerContext, key: string): Promise<void> {
  const { arrivals } = actionPlaces(paths);
  const path = arrivalPath(arrivals, key);
  const staged = newStagingPath(arrivals);
  try {
    await ensureDirectory(arrivals);
    await writeFileAtomic(staged, renderStateDocument(arrivalDocument, await readMoment({ clock, paths })));
    await link(staged, path);
    await syncDirectory(arrivals);
  } catch (error) {
    if (systemErrorCode(error) !== 'EEXIST') throw fileError('write', path, error);
  } finally {
    await discardStaging(staged);
  }
}

/** How long it has waited here. What is wrong with the note is told, and its file tells instead. */
export async function readWaitedMs(ctx: MarkerContext, key: string, name: EntryName): Promise<number> {
  const now = await readMoment(ctx);
  return waitedMs((await readArrival(ctx, key)) ?? (await readFileMoment(name)) ?? now, now);
}

/** Across boots the clock may have been put back: it has waited since this one at least. Pure. */
export function waitedMs(since: Moment, now: Moment): number {
  const isOtherBoot = since.boot !== undefined && since.boot.id !== now.boot?.id;
  return Math.max(elapsedMs(since, now), isOtherBoot ? (now.boot?.uptimeMs ?? 0) : 0);
}

/** Best effort: those that are left go by their age. */
export async function forgetArrival({ paths, log }: MarkerContext, key: string): Promise<void> {
  await rm(arrivalPath(actionPlaces(paths).arrivals, key), { force: true }).catch((error: unknown) => {
    log.warning(`a note of the inbox stays: ${describeError(error)}`);
  });
}

/** No action is begun so late; and where there is no note, its file says nearly the same. */
const keptMs = 2 * 24 * 60 * 60_000;

/** Of what went from the inbox by another hand: the clock may have been set since it was noted. Best effort. */
export async function sweepArrivals({ paths, clock }: MarkerContext): Promise<void> {
  const { arrivals, inbox } = actionPlaces(paths);
  const ids = new Set((await readdir(inbox).catch(() => [])).map(parseActionFileName));
  for (const name of await readdir(arrivals).catch(() => [])) {
    if (isNoteOf(name, ids)) continue;
    const path = join(arrivals, name);
    const about = await lstat(path).catch(() => undefined);
    const isOld = about !== undefined && clock.now().getTime() - about.mtimeMs > keptMs;
    if (isOld) await rm(path, { force: true }).catch(() => {});
  }
}

function isNoteOf(name: string, ids: ReadonlySet<string | undefined>): boolean {
  const key = name.endsWith('.json') ? name.slice(0, -'.json'.length) : '';
  return markerKeyPattern.test(key) && ids.has(actionIdOf(key));
}

async function readArrival({ paths, clock, log }: MarkerContext, key: string): Promise<Moment | undefined> {
  try {
    const path = arrivalPath(actionPlaces(paths).arrivals, key);
    const read = await readDocument(path, arrivalDocument, { now: clock.now(), log, repair: false });
    return read.kind === 'ok' ? read.value : undefined;
  } catch (error) {
    log.warning(describeError(error));
    return undefined;
  }
}

/** When it came there under its name: nobody sets that. */
async function readFileMoment({ path }: EntryName): Promise<Moment | undefined> {
  return await lstat(path).then(
    ({ ctimeMs }) => ({ atMs: ctimeMs }),
    () => undefined,
  );
}

function arrivalPath(arrivals: string, key: string): string {
  if (!markerKeyPattern.test(key)) throw new InternalError(`not a marker's key: ${JSON.stringify(key)}`);
  return join(arrivals, `${key}.json`);
}

const arrivalDocument = defineDocument<Moment>({
  version: 1,
  isCompact: true,
  parse: ({ atMs, boot }) => {
    if (typeof atMs !== 'number') throw new TypeError('atMs is no instant');
    if (boot === undefined) return { atMs };
    if (!isRecord(boot) || typeof boot['id'] !== 'string' || typeof boot['uptimeMs'] !== 'number') {
      throw new TypeError('boot has the wrong shape');
    }
    return { atMs, boot: { id: boot['id'], uptimeMs: boot['uptimeMs'] } };
  },
});
