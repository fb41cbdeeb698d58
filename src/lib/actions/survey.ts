// What a node has of actions, for people: what waits, what is under way, what has not been told. Changes nothing, and looks at the names
// of most things alone.
import { lstat } from 'node:fs/promises';
import { mapBounded } from '../bounded.ts';
import { parseEventFileName } from '../deploy-runner/event.ts';
import { listOpenKeys, type MarkerContext, type ReadMarker, readMarker } from './markers.ts';
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
