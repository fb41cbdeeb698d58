// What a node has of actions, for people: what waits, what is under way, what has not been told. Changes nothing, and looks at the names
// of most things alone.
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { mapBounded } from '../bounded.ts';
import { actionIdOf } from '../deploy-runner/key.ts';
import { isLockHeld } from '../lock/list-locks.ts';
import {
  listOpenKeys,
  type Marker,
  type MarkerContext,
  openPath,
  type ReadMarker,
  readMarker,
} from './markers.ts';
import { listEntries } from './open.ts';
import { actionPlaces } from './places.ts';
import { listResults } from './spool.ts';

export type NodeSurvey = {
  /** `sinceMs`: when the one that waits the longest came; undefined where there is none. */
  inbox: { count: number; sinceMs?: number };
  outbox: { count: number; sinceMs?: number };
  /** Names. */
  quarantine: readonly string[];
  /** Approvals that were begun, and whose result is not in the outbox yet. */
  open: readonly OpenAction[];
};

export type OpenAction = {
  actionId: string;
  /**
   * `announced`: a marker was about to be made. `lost`: begun, and nobody is at it any more. The last three are what readMarker says of
   * one that is none.
   */
  state: 'announced' | 'started' | 'lost' | 'ended' | 'damaged' | 'newer' | 'unreadable';
  service?: string;
  /** Of its announcement, its start or its end. */
  at?: string;
};

const mostEntries = 10_000;
const readsAtOnce = 16;

export async function surveyNode(ctx: MarkerContext): Promise<NodeSurvey> {
  const { inbox, outbox, quarantine } = actionPlaces(ctx.paths);
  const waiting = await listEntries(inbox, mostEntries);
  const times = await mapBounded(waiting.names, readsAtOnce, ({ path }) => changedAt(path));
  const results = await listResults(ctx);
  // Not by their names, in which one clock that was wrong once may have gone on.
  const unsent = await mapBounded(results, readsAtOnce, (name) => changedAt(join(outbox, name)));
  return {
    inbox: withSince(waiting.names.length, times),
    outbox: withSince(results.length, unsent),
    quarantine: (await listEntries(quarantine, mostEntries)).names.map(({ text }) => text),
    open: await listOpen(ctx),
  };
}

function withSince(count: number, times: readonly (number | undefined)[]): NodeSurvey['inbox'] {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? { count } : { count, sinceMs: Math.min(...known) };
}

/** Undefined where it has gone. */
async function changedAt(path: Buffer | string): Promise<number | undefined> {
  return await lstat(path).then(
    ({ ctimeMs }) => ctimeMs,
    () => undefined,
  );
}

async function listOpen(ctx: MarkerContext): Promise<OpenAction[]> {
  const open = await mapBounded(await listOpenKeys(ctx), readsAtOnce, async (key) => {
    const at = await changedAt(openPath(ctx.paths, key));
    // Gone meanwhile: it has been told.
    return at === undefined ? undefined : await readOpen(ctx, key, at);
  });
  return open.filter((one) => one !== undefined);
}

async function readOpen(
  ctx: MarkerContext,
  key: string,
  announcedMs: number,
): Promise<OpenAction | undefined> {
  const read = await readMarker(ctx, key);
  if (!isStarted(read) || (await isAtWork(ctx, read))) return toOpen(key, read, announcedMs);
  // It may have ended while we looked.
  const again = await readMarker(ctx, key);
  const open = toOpen(key, again, announcedMs);
  return open !== undefined && isStarted(again) ? { ...open, state: 'lost' } : open;
}

type Started = Marker & { state: Extract<Marker['state'], { kind: 'started' }> };

function isStarted(read: ReadMarker): read is Started {
  return typeof read === 'object' && read.state.kind === 'started';
}

/** Its script is there, or the run that is about to start it or to write down its end. */
async function isAtWork({ paths }: MarkerContext, { state: { group } }: Started): Promise<boolean> {
  if (group !== undefined) {
    // Loaded only where something was begun.
    const { findBootId } = await import('../host/boot.ts');
    const { isAlive } = await import('../host/processes.ts');
    if (isAlive(group, await findBootId(paths))) return true;
  }
  return await isLockHeld(paths.locksDir, 'deploy-action');
}

/** Undefined where all is told: runs clear that away. */
function toOpen(key: string, marker: ReadMarker, announcedMs: number): OpenAction | undefined {
  if (typeof marker !== 'object') {
    const at = new Date(announcedMs).toISOString();
    return { actionId: actionIdOf(key), state: marker ?? 'announced', at };
  }
  const { actionId, service, state } = marker;
  const about = service === undefined ? { actionId } : { actionId, service };
  switch (state.kind) {
    case 'started':
      return { ...about, state: 'started', at: state.startedAt };
    case 'ended':
      return { ...about, state: 'ended', at: state.endedAt };
    case 'reported':
      return undefined;
  }
}
