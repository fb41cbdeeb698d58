// Sends what the outbox has. Nothing leaves the outbox before rsync has said that all of it has arrived: sending a result twice is
// sending it once, since its name and its text never change.
import { actionPlaces } from '../actions/places.ts';
import { listResults, removeResults } from '../actions/spool.ts';
import type { ActionsConfig } from '../config/config.ts';
import type { BaseContext } from '../context.ts';
import { ReeveError, StepError } from '../errors.ts';
import { buildPushArgs } from '../rsync/args.ts';
import { findRemoteShell, runRsync } from '../rsync/run.ts';
import { groupResults, type ResultGroup } from './push-place.ts';

/** For all of them together. */
export const pushMs = 120_000;

type PushContext = Pick<BaseContext, 'paths' | 'signal' | 'log'>;

export type PushEnd = { sent: string[]; errors: ReeveError[] };

export async function pushResults(ctx: PushContext, { push }: ActionsConfig): Promise<PushEnd> {
  const end: PushEnd = { sent: [], errors: [] };
  const lastMs = performance.now() + pushMs;
  for (const group of groupResults(push, await listResults(ctx))) {
    const leftMs = Math.round(lastMs - performance.now());
    if (ctx.signal.aborted || leftMs <= 0) break;
    try {
      await pushGroup(ctx, group, leftMs);
      end.sent.push(...group.names);
    } catch (error) {
      if (!(error instanceof ReeveError)) throw error;
      end.errors.push(error);
      // Another day's directory is on the same machine.
      if (error.code.startsWith('rsync')) break;
    }
  }
  return end;
}

async function pushGroup(
  ctx: PushContext,
  { place, names, isDated }: ResultGroup,
  timeoutMs: number,
): Promise<void> {
  const what = `push results to ${JSON.stringify(place)}`;
  const remoteShell = await findRemoteShell(ctx, place, 'push');
  const transfer = {
    ...(remoteShell === undefined ? {} : { remoteShell }),
    from: actionPlaces(ctx.paths).outbox,
    to: place,
  };
  const { verdict, error } = await runRsync(ctx, {
    what,
    args: buildPushArgs({ ...transfer, makesPath: isDated }),
    input: names.map((name) => `${name}\0`).join(''),
    timeoutMs,
  });
  if (error !== undefined) throw error;
  if (verdict !== 'complete') throw new StepError(`cannot ${what}: some of them are gone from the outbox`);
  await removeResults(ctx, names);
  for (const name of names) ctx.log.info(`sent: ${name}`);
}
