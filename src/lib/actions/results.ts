// From the end of an action to a result in the outbox: into the marker first, then into the outbox, then into the marker that it is
// there. Whoever finds it half-way goes on from where it was.
import type { BaseContext } from '../context.ts';
import { buildResultEvent, eventFileName } from '../deploy-runner/event.ts';
import { StepError } from '../errors.ts';
import { withLock } from '../lock/with-locks.ts';
import { writeLastEnd } from './last-end.ts';
import {
  type ActionEnd,
  hasMarker,
  type Marker,
  type MarkerContext,
  makeMarker,
  readMarker,
  writeMarker,
} from './markers.ts';
import { noteRefusal } from './refusals.ts';
import { putResult, takeEventTime, withStagedResult } from './spool.ts';

export type ResultContext = MarkerContext & Pick<BaseContext, 'runId' | 'command'>;

type Ended = Marker & { state: Extract<Marker['state'], { kind: 'ended' }> };

/** `isUnparsed`: its key is that of a file, and names no approval that anybody waits for. */
export type EndDetails = { node: string; end: ActionEnd; outputTail?: string; isUnparsed?: boolean };

type Unended = Omit<Marker, 'state'> & { state?: Marker['state'] };

/** Assumes that nobody else is at it. Again does no harm: what was ended before is not told under another name. */
export async function tellEnd(ctx: ResultContext, marker: Unended, details: EndDetails): Promise<void> {
  await underResults(ctx, async () => {
    const found = await readMarker(ctx, marker.key);
    if (found === 'newer' || found === 'unreadable') {
      throw new StepError(`cannot write the marker of ${marker.actionId}: what is there is ${found}`);
    }
    const state = typeof found === 'object' ? found.state : undefined;
    if (state?.kind === 'reported') return;
    if (state?.kind === 'ended') return await putEnd(ctx, { ...marker, state });
    const ended = await endMarker(ctx, marker, details);
    await withStagedResult(ctx, ended.state, async (put) => {
      await writeMarker(ctx, ended);
      await put();
      await closeEnded(ctx, ended);
    });
  });
}

/** For one whose marker cannot be read, which is not written either. Told by its file, which leaves the inbox. */
export async function tellUnmarked(
  ctx: ResultContext,
  { node, actionId, key, reason }: Pick<Refusal, 'node' | 'actionId' | 'key' | 'reason'>,
): Promise<void> {
  const about = { actionId, key, actionType: 'redeploy', run: ctx.runId };
  const end: ActionEnd = { outcome: 'unknown', endedAt: ctx.clock.now().toISOString(), reason };
  await underResults(
    ctx,
    async () => await putResult(ctx, (await endMarker(ctx, about, { node, end })).state),
  );
}

/** What the marker on disk says already. */
export async function reportEnd(ctx: ResultContext, ended: Ended): Promise<void> {
  await underResults(ctx, () => putEnd(ctx, ended));
}

const waitMs = 30_000;

/**
 * From the time in the name of a result until it is in the outbox: whoever sends results sees none come after a younger one, but for one
 * that was cut off between its marker and the outbox. That keeps its name, since it may have been sent. Whatever else is to stop, an end
 * is told.
 */
async function underResults<T>(ctx: ResultContext, work: () => Promise<T>): Promise<T> {
  return await withLock({ ...ctx, signal: new AbortController().signal }, 'results', work, { waitMs });
}

async function putEnd(ctx: MarkerContext, ended: Ended): Promise<void> {
  await putResult(ctx, ended.state);
  await closeEnded(ctx, ended);
}

async function closeEnded(ctx: MarkerContext, { state, ...marker }: Ended): Promise<void> {
  const { kind: _, event: __, ...end } = state;
  await writeMarker(ctx, { ...marker, state: { kind: 'reported', ...end } });
  await writeLastEnd(ctx, marker, end);
}

/** The marker of an action that has ended, with the event that tells so. Nothing is written but the time of the last event. */
async function endMarker(
  ctx: MarkerContext,
  { state: _, ...marker }: Unended,
  { node, end, outputTail, isUnparsed = false }: EndDetails,
): Promise<Ended> {
  const { actionId, actionType, service, key } = marker;
  const epochMs = await takeEventTime(ctx);
  const { outcome, exitCode, startedAt, endedAt } = end;
  const reason = explainEnd(end);
  const event = buildResultEvent({
    ...{ node, actionId, actionType },
    ...(isUnparsed ? {} : { key }),
    ...(service === undefined ? {} : { service }),
    status: outcome === 'succeeded' ? 'completed' : 'failed',
    ...(exitCode === undefined ? {} : { exitCode }),
    ...(reason === undefined ? {} : { reason }),
    ...(startedAt === undefined ? {} : { startedAt }),
    finishedAt: endedAt,
    ...(outputTail === undefined || outputTail === '' ? {} : { outputTail }),
  });
  const eventName = eventFileName(node, epochMs, actionId);
  return { ...marker, state: { kind: 'ended', ...end, eventName, event } };
}

/** The control side knows two ends only: the other two are said in words. */
function explainEnd({ outcome, reason }: ActionEnd): string | undefined {
  if (outcome === 'succeeded' || outcome === 'failed') return reason;
  return reason === undefined ? outcome : `${outcome}: ${reason}`;
}

export type Refusal = {
  node: string;
  actionId: string;
  key: string;
  /** Undefined where nobody could read it: then it is told by its id alone, as nobody knows which approval it was. */
  actionType?: string;
  service?: string;
  reason: string;
};

/** Nothing is run. `known`: it was refused or begun before, and nothing is told again. Needs no other lock. */
export async function refuseAction(ctx: ResultContext, refusal: Refusal): Promise<'refused' | 'known'> {
  const { node, actionId, key, actionType, service, reason } = refusal;
  // Asked again and again by whoever sees the same file each time.
  if (await hasMarker(ctx, key)) return 'known';
  const marker = {
    ...{ actionId, key, actionType: actionType ?? 'redeploy', run: ctx.runId },
    ...(service === undefined ? {} : { service }),
  };
  const end: ActionEnd = { outcome: 'rejected', endedAt: ctx.clock.now().toISOString(), reason };
  return await underResults(ctx, async () => {
    const ended = await endMarker(ctx, marker, { node, end, isUnparsed: actionType === undefined });
    return await withStagedResult(ctx, ended.state, async (put) => {
      await noteRefusal(ctx, key);
      if ((await makeMarker(ctx, ended)) === 'known') return 'known';
      await put();
      await closeEnded(ctx, ended);
      return 'refused';
    });
  });
}
