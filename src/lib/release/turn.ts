// Operators take turns at a store in a directory, which several hosts may share: what one reads, merges and writes, the next
// one reads. Advisory: the kernel's locks end at the host, so that correctness rests on conditional writes alone.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ClusterConfig } from '../config/config.ts';
import type { BaseContext } from '../context.ts';
import { describeError, systemErrorCode } from '../errors.ts';
import { formatDuration } from '../time.ts';

/** Ends once everything is written: the wait for convergence is nobody's turn. A second end does nothing. */
export type Turn = { end(): Promise<void> };

type TurnContext = Pick<BaseContext, 'clock' | 'log' | 'signal'>;

/** Whoever has been silent for this long is gone: a holder says every second that it is there. */
const staleMs = 3_000;
/** Longer than a lock of somebody gone stays, and no longer than a person waits without a word. */
const patienceMs = 10_000;
const retryMs = 100;

const noTurn: Turn = { end: () => Promise.resolve() };

/** Runs the work in our turn, or after some waiting without one: then it merges again where others are quicker. */
export async function inTurn<T>(
  ctx: TurnContext,
  cluster: Pick<ClusterConfig, 'store'>,
  { dryRun }: { dryRun: boolean },
  work: (turn: Turn) => Promise<T>,
): Promise<T> {
  const isShared = cluster.store.startsWith('file:') && !dryRun;
  const turn = isShared ? await takeTurn(ctx, fileURLToPath(cluster.store)) : noTurn;
  try {
    return await work(turn);
  } finally {
    await turn.end();
  }
}

async function takeTurn(ctx: TurnContext, root: string): Promise<Turn> {
  const path = join(root, '.locks', 'deploy.lock');
  try {
    // Not its parents: a store that is not mounted must not be made anew.
    await mkdir(join(root, '.locks'), { mode: 0o700 }).catch(ignoreExisting);
    const release = await waitForLock(ctx, root, path);
    if (release !== undefined) return { end: createEnd(release) };
    ctx.log.warning(
      `another deploy has held ${JSON.stringify(path)} for ${formatDuration(patienceMs)}: going on beside it`,
    );
  } catch (error) {
    // Of a store that is not there, the reading that follows tells more.
    if (systemErrorCode(error) !== 'ENOENT') {
      ctx.log.warning(`cannot take ${JSON.stringify(path)}: ${describeError(error)}: going on without it`);
    }
  }
  return noTurn;
}

type Release = () => Promise<void>;

/** Undefined where another still has it when our patience ends. */
async function waitForLock(ctx: TurnContext, root: string, path: string): Promise<Release | undefined> {
  // CommonJS: its bundled form has a default export only.
  const { default: lockfile } = await import('proper-lockfile');
  const until = performance.now() + patienceMs;
  for (;;) {
    try {
      return await lockfile.lock(root, {
        lockfilePath: path,
        realpath: false,
        stale: staleMs,
        update: 1_000,
        // By default it throws from a timer, in the middle of a write.
        onCompromised: () => ctx.log.warning(`lost ${JSON.stringify(path)}: going on without it`),
      });
    } catch (error) {
      if (systemErrorCode(error) !== 'ELOCKED') throw error;
    }
    if (performance.now() >= until || ctx.signal.aborted) return undefined;
    ctx.log.progress('waiting for another deploy');
    await ctx.clock.sleep(retryMs, ctx.signal);
  }
}

/** A lock that was lost cannot be given back, which is no trouble any more. */
function createEnd(release: Release): Turn['end'] {
  let ended: Promise<void> | undefined;
  return () => {
    ended ??= release().catch(() => {});
    return ended;
  };
}

function ignoreExisting(error: unknown): void {
  if (systemErrorCode(error) !== 'EEXIST') throw error;
}
