// Lets go of workspaces whose run nobody works on any more.
import { lstat, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Context } from '../../context.ts';
import { describeError } from '../../errors.ts';
import { safeFileId } from '../../ids.ts';
import { runsDir } from './paths.ts';

/** After a run's last job here: the next one of its chain may have to wait long at the server. */
const keptMs = 3 * 24 * 60 * 60_000;
const removing = '.removing-';

export type KeptRun = { name: string; lastJobAtMs: number };

/** Pure: those of the future, as a clock that went back has them, stay. */
export function planRemovedRuns(
  runs: readonly KeptRun[],
  { openRunIds, now }: { openRunIds: ReadonlySet<string>; now: Date },
): string[] {
  const open = new Set([...openRunIds].map(safeFileId));
  return runs
    .filter(({ name, lastJobAtMs }) => !open.has(name) && now.getTime() - lastJobAtMs > keptMs)
    .map(({ name }) => name);
}

/** Of no run in `openRunIds`, and of none that had a job a short while ago. What cannot be removed is told and left. */
export async function removeOldWorkspaces(
  ctx: Pick<Context, 'overrides' | 'paths' | 'clock' | 'log'>,
  openRunIds: ReadonlySet<string>,
): Promise<{ removed: number }> {
  const runs = runsDir(ctx);
  const names = await readdir(runs).catch((): string[] => []);
  const kept: KeptRun[] = [];
  for (const name of names.filter((one) => !one.startsWith(removing))) {
    kept.push({ name, lastJobAtMs: await findLastJob(join(runs, name)) });
  }
  const planned = planRemovedRuns(kept, { openRunIds, now: ctx.clock.now() });
  let removed = 0;
  for (const name of [...names.filter((one) => one.startsWith(removing)), ...planned]) {
    try {
      await removeRun(runs, name);
      removed += 1;
    } catch (error) {
      ctx.log.warning(`cannot remove the workspace of run ${name}: ${describeError(error)}`);
    }
  }
  return { removed };
}

/** Every job makes its own directory in the first two. */
async function findLastJob(run: string): Promise<number> {
  const places = [join(run, 'scratch'), join(run, 'artifacts'), run];
  const times = await Promise.all(
    places.map(async (place) => (await lstat(place).catch(() => undefined))?.mtimeMs ?? 0),
  );
  return Math.max(...times);
}

/** Out of its place first: nobody goes on with a half of it. */
async function removeRun(runs: string, name: string): Promise<void> {
  const away = name.startsWith(removing) ? name : `${removing}${name}`;
  if (away !== name) await rename(join(runs, name), join(runs, away));
  await rm(join(runs, away), { recursive: true, force: true });
}
