// From the end of an action to a result in the outbox: into the marker first, then into the outbox, then into the marker that it is
// there. Whoever finds it half-way goes on from where it was.
import type { BaseContext } from '../context.ts';
import { buildResultEvent, eventFileName } from '../deploy-runner/event.ts';
import {
  type ActionEnd,
  hasMarker,
  type Marker,
  type MarkerContext,
  makeMarker,
  writeMarker,
} from './markers.ts';
import { putResult, takeEventTime } from './spool.ts';

export type ResultContext = MarkerContext & Pick<BaseContext, 'runId'>;

type Ended = Marker & { state: Extract<Marker['state'], { kind: 'ended' }> };

/** `isUnparsed`: its key is that of a file, and names no approval that anybody waits for. */
export type EndDetails = { node: string; end: ActionEnd; outputTail?: string; isUnparsed?: boolean };

/** The marker of an action that has ended, with the event that tells so. Nothing is written but the time of the last event. */
export async function endMarker(
  ctx: MarkerContext,
  { state: _, ...marker }: Omit<Marker, 'state'> & { state?: Marker['state'] },
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

/** Assumes that the marker on disk says that it has ended. Again does no harm. */
export async function reportEnd(ctx: MarkerContext, { state, ...marker }: Ended): Promise<void> {
  const { kind: _, event, ...end } = state;
  await putResult(ctx, end.eventName, event);
  await writeMarker(ctx, { ...marker, state: { kind: 'reported', ...end } });
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

/** Nothing is run. `known`: it was refused or begun before, and nothing is told again. Needs no lock. */
export async function refuseAction(ctx: ResultContext, refusal: Refusal): Promise<'refused' | 'known'> {
  const { node, actionId, key, actionType, service, reason } = refusal;
  // Asked again and again by whoever sees the same file each time.
  if (await hasMarker(ctx, key)) return 'known';
  const marker = {
    ...{ actionId, key, actionType: actionType ?? 'redeploy', run: ctx.runId },
    ...(service === undefined ? {} : { service }),
  };
  const end: ActionEnd = { outcome: 'rejected', endedAt: ctx.clock.now().toISOString(), reason };
  const ended = await endMarker(ctx, marker, { node, end, isUnparsed: actionType === undefined });
  if ((await makeMarker(ctx, ended)) === 'known') return 'known';
  await reportEnd(ctx, ended);
  return 'refused';
}
