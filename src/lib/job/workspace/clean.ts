// Lets go of workspaces whose run nobody works on any more.
import { readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { BaseContext } from '../../context.ts';
import { describeError, systemErrorCode } from '../../errors.ts';
import { safeFileId } from '../../ids.ts';
import { findJob, listOpenJobs, readJob } from '../../jobs/book.ts';
import { fileError } from '../../state/file-error.ts';
import { runsDir } from './paths.ts';

const keptMs = 24 * 60 * 60_000;
/** A workspace may have a million files: whoever claims jobs does not wait for many of them. */
const maxRemoved = 2;
const gonePrefix = '.gone-';

type CleanContext = Pick<BaseContext, 'overrides' | 'paths' | 'clock' | 'log'>;

/** When a new one is made. Nothing goes where it cannot be told whose an open job's workspace is. */
export async function makeRoomForWorkspace(ctx: CleanContext): Promise<void> {
  try {
    const openRunIds = new Set<string>();
    for (const key of await listOpenJobs(ctx)) {
      const place = await findJob(ctx, key);
      if (place === undefined) continue;
      const { claim } = await readJob(ctx, place, false);
      if (claim === undefined) return;
      openRunIds.add(claim.runId);
    }
    await removeOldWorkspaces(ctx, openRunIds);
  } catch (error) {
    ctx.log.warning(`cannot remove old workspaces: ${describeError(error)}`);
  }
}

/** Of no run in `openRunIds`, and of none that had a job within a day: its next one may be claimed yet. */
async function removeOldWorkspaces(
  ctx: CleanContext,
  openRunIds: ReadonlySet<string>,
): Promise<{ removed: number }> {
  const runs = runsDir(ctx);
  const open = new Set([...openRunIds].map(safeFileId));
  const nowMs = ctx.clock.now().getTime();
  let removed = 0;
  for (const name of await listNames(runs)) {
    if (removed >= maxRemoved) break;
    const path = join(runs, name);
    const isLeft = name.startsWith(gonePrefix);
    if (open.has(name) || (!isLeft && nowMs - (await readTouched(path)) < keptMs)) continue;
    try {
      await removeRun(runs, name, isLeft);
      removed += 1;
    } catch (error) {
      ctx.log.warning(`cannot remove workspace ${path}: ${describeError(error)}`);
    }
  }
  return { removed };
}

/** Renamed first: whoever claims its next job meets the whole workspace or none. */
async function removeRun(runs: string, name: string, isLeft: boolean): Promise<void> {
  const gone = join(runs, isLeft ? name : `${gonePrefix}${name}`);
  if (!isLeft) await rename(join(runs, name), gone);
  await rm(gone, { recursive: true, force: true, maxRetries: 2 });
}

async function listNames(runs: string): Promise<string[]> {
  return await readdir(runs).catch((error: unknown) => {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw fileError('read', runs, error);
  });
}

/** Each job makes directories in one of these when it begins. */
async function readTouched(path: string): Promise<number> {
  const times = await Promise.all(
    ['.', 'workspace', 'artifacts', 'scratch'].map((name) =>
      stat(join(path, name)).then(
        ({ mtimeMs }) => mtimeMs,
        () => 0,
      ),
    ),
  );
  return Math.max(...times);
}
