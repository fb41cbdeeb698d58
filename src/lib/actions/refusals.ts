// What was refused here and never begun, by the names of empty files alone: whoever sends what is to be refused without end must not fill
// the disk. A marker of a redeploy that was begun is none of this, and stays for ever.
import { lstat, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { mapBounded } from '../bounded.ts';
import { actionIdOf, markerKeyPattern } from '../deploy-runner/key.ts';
import { actionFileName } from '../deploy-runner/names.ts';
import { systemErrorCode } from '../errors.ts';
import { ensureDirectory } from '../state/directory.ts';
import { fileError } from '../state/file-error.ts';
import { type MarkerContext, readMarker, removeMarker } from './markers.ts';
import { actionPlaces } from './places.ts';

type Paths = MarkerContext['paths'];

const dayMs = 24 * 60 * 60_000;

/** `at`: in milliseconds since 1970. */
export type Refusal = { key: string; at: number };

export const refusalLimits = { most: 10_000, keptMs: 30 * dayMs };

const readsAtOnce = 16;

/** Before its marker, so that none is made that nobody finds again. */
export async function noteRefusal({ paths }: { paths: Paths }, key: string): Promise<void> {
  const { refusals } = actionPlaces(paths);
  try {
    await ensureDirectory(refusals);
    await writeFile(join(refusals, key), '', { mode: 0o600 });
  } catch (error) {
    throw fileError('write', join(refusals, key), error);
  }
}

export type Source = {
  /** Keys of all that lies there, as far as it is known. */
  keys: ReadonlySet<string>;
  /** False: there may be more. */
  isWhole: boolean;
};

/**
 * Forgets old refusals of what is no longer at the source; and where there are too many, the oldest ones of what is not known to be
 * there. Should such a file come back, it is refused and told again.
 */
export async function sweepRefusals(
  ctx: MarkerContext,
  refusals: readonly Refusal[],
  { keys, isWhole, most, keptMs }: Source & typeof refusalLimits,
): Promise<void> {
  const now = ctx.clock.now().getTime();
  const waiting = await listNames(actionPlaces(ctx.paths).inbox);
  // What waits has its marker asked for once more.
  const isGone = (key: string): boolean => !keys.has(key) && !waiting.has(actionFileName(actionIdOf(key)));
  const tooMany = refusals.length - most;
  const due = refusals
    .filter(({ key }) => isGone(key))
    .filter(({ at }, index) => index < tooMany || (isWhole && now - at > keptMs));
  for (const { key } of due) await forget(ctx, key);
}

async function forget(ctx: MarkerContext, key: string): Promise<void> {
  const marker = await readMarker(ctx, key);
  // Nobody knows what it says, or it is still to be told.
  if (typeof marker === 'string' || (marker !== undefined && marker.state.kind !== 'reported')) return;
  // Any other was begun just as it was refused here.
  if (marker?.state.kind === 'reported' && marker.state.outcome === 'rejected') await removeMarker(ctx, key);
  const path = join(actionPlaces(ctx.paths).refusals, key);
  await rm(path, { force: true }).catch((error: unknown) => {
    throw fileError('remove', path, error);
  });
}

/** Of one day. A time that is ahead by more says that the clock was wrong. */
export function countRecent(refusals: readonly Refusal[], now: Date): number {
  return refusals.filter(({ at }) => Math.abs(now.getTime() - at) < dayMs).length;
}

/** Oldest first. */
export async function readRefusals({ paths }: { paths: Paths }): Promise<Refusal[]> {
  const { refusals } = actionPlaces(paths);
  const keys = [...(await listNames(refusals))].filter((name) => markerKeyPattern.test(name));
  const dated = await mapBounded(keys, readsAtOnce, async (key) => {
    const about = await lstat(join(refusals, key)).catch(() => undefined);
    return about === undefined ? undefined : { key, at: about.mtimeMs };
  });
  return dated.filter((one) => one !== undefined).toSorted((a, b) => a.at - b.at);
}

async function listNames(directory: string): Promise<Set<string>> {
  try {
    return new Set(await readdir(directory));
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return new Set();
    throw fileError('read', directory, error);
  }
}
