// The markers: one file for each approval that was begun or refused. Made exclusively, written before each transition, and never
// removed once it was begun: the same approval does not come twice. Beside it an empty file says that its result has not left for the outbox.
import { link, lstat, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BaseContext } from '../context.ts';
import { markerKeyPattern } from '../deploy-runner/key.ts';
import { describeError, InternalError, ReeveError, systemErrorCode } from '../errors.ts';
import type { ProcessName } from '../host/processes.ts';
import { writeFileAtomic } from '../state/atomic-file.ts';
import { ensureDirectory, syncDirectory } from '../state/directory.ts';
import { readDocument, renderStateDocument } from '../state/document.ts';
import { fileError } from '../state/file-error.ts';
import { discardStaging, newStagingPath } from '../state/staging.ts';
import { markerDocument } from './documents.ts';
import { actionPlaces } from './places.ts';

export type Marker = {
  actionId: string;
  key: string;
  /** As asked for. */
  actionType: string;
  service?: string;
  /** The run that has begun it. */
  run: string;
  state: MarkerState;
};

export type MarkerState =
  /** Written before the script starts. Whoever finds it, and nobody at work, knows no more than that. */
  | { kind: 'started'; startedAt: string; group?: ProcessName }
  /** How it ended, before anybody is told. */
  | ({ kind: 'ended'; eventName: string; event: string } & ActionEnd)
  /** The result is in the outbox, or was. */
  | ({ kind: 'reported'; eventName: string } & ActionEnd);

export type ActionOutcome = 'succeeded' | 'failed' | 'rejected' | 'unknown';

export type ActionEnd = {
  outcome: ActionOutcome;
  startedAt?: string;
  endedAt: string;
  exitCode?: number;
  reason?: string;
};

export type MarkerContext = Pick<BaseContext, 'paths' | 'clock' | 'log'>;

type Paths = MarkerContext['paths'];

/**
 * What cannot be taken for a marker is one all the same, and concerns its own key alone. `damaged`: nobody knows what it says. `newer`: a
 * later reeve has written it, and knows. `unreadable`: it is no file, or the disk does not give it. Neither of the last two is ever written.
 */
export type ReadMarker = Marker | 'damaged' | 'newer' | 'unreadable' | undefined;

export async function readMarker({ paths, clock, log }: MarkerContext, key: string): Promise<ReadMarker> {
  try {
    const path = markerPath(paths, key);
    const read = await readDocument(path, markerDocument, { now: clock.now(), log, repair: false });
    if (read.kind === 'missing') return undefined;
    return read.kind === 'ok' && read.value.key === key ? read.value : 'damaged';
  } catch (error) {
    const trouble = findTrouble(error);
    if (trouble === undefined) throw error;
    log.warning(describeError(error));
    return trouble;
  }
}

/** Undefined where it is not the one file's: too many are open, say. */
function findTrouble(error: unknown): 'newer' | 'unreadable' | undefined {
  if (!(error instanceof ReeveError)) return undefined;
  if (error.code === 'newer-version') return 'newer';
  return ownTroubles.has(error.code) ? 'unreadable' : undefined;
}

const ownTroubles: ReadonlySet<string> = new Set([
  ...['EISDIR', 'not-a-file', 'ELOOP', 'ENXIO', 'ENODEV'],
  ...['EIO', 'EACCES', 'EPERM', 'EBADMSG', 'EUCLEAN', 'ENODATA'],
]);

/** Whether this approval was begun or refused before, whatever became of it. Throws where its directory is not to be read: nobody knows. */
export async function hasMarker({ paths }: { paths: Paths }, key: string): Promise<boolean> {
  const path = markerPath(paths, key);
  try {
    await lstat(path);
    return true;
  } catch (error) {
    const code = systemErrorCode(error) ?? '';
    if (code === 'ENOENT') return false;
    // To look at a file takes no right to it: what is refused here is its directory.
    if (!ownTroubles.has(code) || code === 'EACCES') throw fileError('look at', path, error);
    await listNames(actionPlaces(paths).markers);
    return true;
  }
}

/** `known`: there is one, and nothing was written. Of many at once one makes it. */
export async function makeMarker({ paths }: { paths: Paths }, marker: Marker): Promise<'made' | 'known'> {
  const { markers } = actionPlaces(paths);
  const path = markerPath(paths, marker.key);
  const staged = newStagingPath(markers);
  try {
    await ensureDirectory(markers);
    await openKey({ paths }, marker.key);
    await writeFileAtomic(staged, renderStateDocument(markerDocument, marker));
    await link(staged, path);
    await syncDirectory(markers).catch(async (error: unknown) => {
      // It may be gone after a power cut, so nothing begins; and as nothing has begun, nothing is to be found of it.
      await rm(path, { force: true });
      throw error;
    });
    return 'made';
  } catch (error) {
    if (systemErrorCode(error) === 'EEXIST') return 'known';
    throw fileError('write', path, error);
  } finally {
    await discardStaging(staged);
  }
}

/** Assumes that there is one, and that nobody else is at it. */
export async function writeMarker({ paths }: { paths: Paths }, marker: Marker): Promise<void> {
  await writeFileAtomic(markerPath(paths, marker.key), renderStateDocument(markerDocument, marker));
  if (marker.state.kind === 'reported') await closeKey({ paths }, marker.key);
}

/** Keys of what may not have been reported. Looks at names only: there are ever more markers. */
export async function listOpenKeys({ paths }: { paths: Paths }): Promise<string[]> {
  const names = await listNames(actionPlaces(paths).markers);
  const keys = names.map((name) => (name.endsWith(openSuffix) ? name.slice(0, -openSuffix.length) : ''));
  return keys.filter((key) => markerKeyPattern.test(key)).sort();
}

async function listNames(directory: string): Promise<string[]> {
  return await readdir(directory).catch((error: unknown) => {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw fileError('read', directory, error);
  });
}

/** Before its marker is made: whatever ends us then, somebody looks for it. */
export async function openKey({ paths }: { paths: Paths }, key: string): Promise<void> {
  const path = openPath(paths, key);
  await writeFile(path, '', { mode: 0o600 }).catch((error: unknown) => {
    throw fileError('write', path, error);
  });
}

/** For one that has been told. */
export async function closeKey({ paths }: { paths: Paths }, key: string): Promise<void> {
  const path = openPath(paths, key);
  await rm(path, { force: true }).catch((error: unknown) => {
    throw fileError('remove', path, error);
  });
}

/** Only of what was refused: `refusals.ts`. */
export async function removeMarker({ paths }: { paths: Paths }, key: string): Promise<void> {
  const path = markerPath(paths, key);
  await rm(path, { force: true }).catch((error: unknown) => {
    throw fileError('remove', path, error);
  });
}

const openSuffix = '.open';

export function openPath(paths: Paths, key: string): string {
  return join(actionPlaces(paths).markers, `${requireKey(key)}${openSuffix}`);
}

function markerPath(paths: Paths, key: string): string {
  return join(actionPlaces(paths).markers, `${requireKey(key)}.json`);
}

function requireKey(key: string): string {
  if (!markerKeyPattern.test(key)) throw new InternalError(`not a marker's key: ${JSON.stringify(key)}`);
  return key;
}
