// Reads the inbox, the markers and the checkout. Changes nothing.
import { stat } from 'node:fs/promises';
import { readWaitedMs } from '../actions/arrivals.ts';
import { type Entry, readEntry } from '../actions/entry.ts';
import { listOpenKeys, type MarkerContext, readMarker } from '../actions/markers.ts';
import { listEntries } from '../actions/open.ts';
import { actionPlaces } from '../actions/places.ts';
import { readServices } from '../actions/services.ts';
import { mapBounded } from '../bounded.ts';
import type { ActionsConfig } from '../config/config.ts';
import { composeFile } from '../deploy-runner/layout.ts';
import { findRoomMs } from '../deploy-runner/times.ts';
import { describeError } from '../errors.ts';
import { nodeTarget, readHolds } from '../hold/holds.ts';
import { isBeingWritten } from '../state/staging.ts';
import type { EntryFact, Facts } from './facts.ts';

/** More wait for the next look. */
const mostEntries = 1000;
const readsAtOnce = 16;

export async function gatherFacts(
  ctx: MarkerContext,
  actions: Pick<ActionsConfig, 'node' | 'checkout' | 'timeoutMs' | 'resultTimeoutMs'>,
): Promise<Facts> {
  const { node, checkout } = actions;
  const { inbox } = actionPlaces(ctx.paths);
  const { names } = await listEntries(inbox, mostEntries);
  const facts = await mapBounded(names, readsAtOnce, async (name) => {
    // Whoever puts a file there prepares it beside its name.
    if (await isBeingWritten(inbox, name.text)) return undefined;
    const entry = await readEntry(name);
    return entry === undefined ? undefined : await gatherEntry(ctx, entry, checkout);
  });
  const entries = facts.filter((fact) => fact !== undefined);
  const keys = await listOpenKeys(ctx);
  const open = await mapBounded(keys, readsAtOnce, async (key) => ({
    key,
    marker: await readMarker(ctx, key),
  }));
  const isAsked = entries.some(({ entry }) => entry.kind === 'action');
  const services = isAsked ? await gatherServices(checkout, node) : new Set<string>();
  const holds = isAsked ? await readHolds(ctx.paths, ctx.clock.now(), ctx.log) : [];
  const hold = holds.find(({ target }) => target === nodeTarget);
  return {
    ...{ node, entries, open, services, roomMs: findRoomMs(actions) },
    ...(hold === undefined ? {} : { hold }),
  };
}

async function gatherEntry(ctx: MarkerContext, entry: Entry, checkout: string): Promise<EntryFact> {
  switch (entry.kind) {
    case 'foreign':
      return { entry };
    case 'refused':
      return { entry, marker: await readMarker(ctx, entry.key) };
    case 'action': {
      const { service } = entry.action;
      const hasComposeFile = service !== undefined && (await isFile(composeFile(checkout, service)));
      const waitedMs = await readWaitedMs(ctx, entry.key, entry.name);
      return { entry, marker: await readMarker(ctx, entry.key), hasComposeFile, waitedMs };
    }
  }
}

async function isFile(path: string): Promise<boolean> {
  const about = await stat(path).catch(() => undefined);
  return about?.isFile() === true;
}

async function gatherServices(checkout: string, node: string): Promise<Facts['services']> {
  try {
    return await readServices(checkout, node);
  } catch (error) {
    return { problem: `hosts/${node}/services.yaml cannot be used: ${describeError(error)}` };
  }
}
