// Empty files that announce markers which were never made: whoever was about to make one had no room, or was killed. As long as one is
// there, each run looks for what it has to tell.
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { actionIdOf } from '../deploy-runner/key.ts';
import { actionFileName } from '../deploy-runner/names.ts';
import { describeError, ReeveError } from '../errors.ts';
import { readEntry } from './entry.ts';
import { closeKey, hasMarker, listOpenKeys, type MarkerContext, openKey, openPath } from './markers.ts';
import { actionPlaces } from './places.ts';

/** Far longer than anybody takes from one to the other. */
const leftMs = 24 * 60 * 60_000;

/** Assumes the lock. Best effort: what fails is tried again by the next run. */
export async function clearOrphans(ctx: MarkerContext): Promise<void> {
  for (const key of await listOpenKeys(ctx)) {
    await clearOrphan(ctx, key).catch((error: unknown) => {
      if (!(error instanceof ReeveError)) throw error;
      ctx.log.warning(describeError(error));
    });
  }
}

async function clearOrphan(ctx: MarkerContext, key: string): Promise<void> {
  if (!(await isOld(ctx, key)) || (await hasMarker(ctx, key)) || (await isAwaited(ctx, key))) return;
  await closeKey(ctx, key);
  // A pull refuses without the lock: it may have made the marker right now.
  if (await hasMarker(ctx, key)) await openKey(ctx, key);
}

async function isOld({ paths, clock }: MarkerContext, key: string): Promise<boolean> {
  const about = await lstat(openPath(paths, key)).catch(() => undefined);
  return about !== undefined && clock.now().getTime() - about.mtimeMs > leftMs;
}

/** Its file is there still, and is refused or begun some time. */
async function isAwaited({ paths }: MarkerContext, key: string): Promise<boolean> {
  const { inbox, staging } = actionPlaces(paths);
  const text = actionFileName(actionIdOf(key));
  for (const place of [inbox, staging]) {
    const entry = await readEntry({ text, path: Buffer.from(join(place, text)) });
    if (entry !== undefined && entry.kind !== 'foreign' && entry.key === key) return true;
  }
  return false;
}
