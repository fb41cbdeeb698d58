// What a node has of actions, for people: what waits, what is under way, what has not been told. Changes nothing, and looks at the names
// of most things alone.
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { mapBounded } from '../bounded.ts';
import { parseEventFileName } from '../deploy-runner/event.ts';
import { markerKeyPattern } from '../deploy-runner/key.ts';
import { systemErrorCode } from '../errors.ts';
import { fileError } from '../state/file-error.ts';
import {
  type ActionOutcome,
  listOpenKeys,
  type MarkerContext,
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
  /** `damaged`: nobody here knows what its marker says. */
  state: 'started' | 'ended' | 'damaged';
  service?: string;
  /** Of its start or of its end. */
  at?: string;
};

export type LastAction = {
  actionId: string;
  service?: string;
  outcome: ActionOutcome;
  endedAt: string;
  reason?: string;
};

const mostEntries = 10_000;
const readsAtOnce = 16;

export async function surveyNode(ctx: MarkerContext): Promise<NodeSurvey> {
  const { inbox, quarantine } = actionPlaces(ctx.paths);
  const waiting = await listEntries(inbox, mostEntries);
  const times = await mapBounded(waiting.names, readsAtOnce, ({ path }) => changedAt(path));
  const results = await listResults(ctx);
  const [first] = results;
  return {
    inbox: withSince(
      waiting.names.length,
      times.filter((time) => time !== undefined),
    ),
    outbox: withSince(results.length, first === undefined ? [] : [parseEventFileName(first)?.epochMs ?? 0]),
    quarantine: (await listEntries(quarantine, mostEntries)).names.map(({ text }) => text),
    open: await listOpen(ctx),
  };
}

function withSince(count: number, times: readonly number[]): NodeSurvey['inbox'] {
  return times.length === 0 ? { count } : { count, sinceMs: Math.min(...times) };
}

/** Undefined where it has gone. */
async function changedAt(path: Buffer | string): Promise<number | undefined> {
  return await lstat(path).then(
    ({ ctimeMs }) => ctimeMs,
    () => undefined,
  );
}

async function listOpen(ctx: MarkerContext): Promise<OpenAction[]> {
  const open = await mapBounded(await listOpenKeys(ctx), readsAtOnce, async (key) =>
    toOpen(key, await readMarker(ctx, key)),
  );
  return open.filter((one) => one !== undefined);
}

/** Undefined where nothing was begun, or all is told: runs clear that away. */
function toOpen(key: string, marker: ReadMarker): OpenAction | undefined {
  if (marker === undefined) return undefined;
  // The digest is of no use for people.
  if (typeof marker === 'string') return { actionId: key.slice(0, -65), state: 'damaged' };
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

/** More markers are not looked at: there are ever more of them. */
const mostMarkers = 20_000;
/** The newest ones may be under way. */
const mostTries = 5;

/** What ended last, whatever came of it. */
export async function readLastEnd(ctx: MarkerContext): Promise<LastAction | undefined> {
  const { markers } = actionPlaces(ctx.paths);
  const keys = (await listNames(markers))
    .map((name) => (name.endsWith('.json') ? name.slice(0, -'.json'.length) : ''))
    .filter((key) => markerKeyPattern.test(key));
  if (keys.length > mostMarkers) return undefined;
  const dated = await mapBounded(keys, readsAtOnce, async (key) => ({
    key,
    at: (await changedAt(join(markers, `${key}.json`))) ?? 0,
  }));
  for (const { key } of dated.toSorted((a, b) => b.at - a.at).slice(0, mostTries)) {
    const marker = await readMarker(ctx, key);
    if (typeof marker !== 'object' || marker.state.kind === 'started') continue;
    const { outcome, endedAt, reason } = marker.state;
    const service = marker.service === undefined ? {} : { service: marker.service };
    return {
      ...{ actionId: marker.actionId, ...service, outcome, endedAt },
      ...(reason === undefined ? {} : { reason }),
    };
  }
  return undefined;
}

async function listNames(directory: string): Promise<string[]> {
  return await readdir(directory).catch((error: unknown) => {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw fileError('read', directory, error);
  });
}
