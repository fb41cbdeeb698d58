// What has ended last, for people: there are ever more markers to look for it in.
import { describeError, ReeveError } from '../errors.ts';
import { writeFileAtomic } from '../state/atomic-file.ts';
import { readDocument, renderStateDocument } from '../state/document.ts';
import { lastEndDocument } from './documents.ts';
import type { ActionEnd, ActionOutcome, Marker, MarkerContext } from './markers.ts';
import { actionPlaces } from './places.ts';

export type LastAction = {
  actionId: string;
  service?: string;
  outcome: ActionOutcome;
  endedAt: string;
  reason?: string;
};

/** Best effort: it is in its marker, its result and the history as well. */
export async function writeLastEnd(
  { paths, log }: MarkerContext,
  { actionId, service }: Pick<Marker, 'actionId' | 'service'>,
  { outcome, endedAt, reason }: ActionEnd,
): Promise<void> {
  const last: LastAction = {
    ...{ actionId, outcome, endedAt },
    ...(service === undefined ? {} : { service }),
    ...(reason === undefined ? {} : { reason }),
  };
  try {
    await writeFileAtomic(actionPlaces(paths).lastEnd, renderStateDocument(lastEndDocument, last));
  } catch (error) {
    log.warning(describeError(error));
  }
}

/** Undefined where nothing has ended yet, or nobody can tell. */
export async function readLastEnd({ paths, clock, log }: MarkerContext): Promise<LastAction | undefined> {
  const options = { now: clock.now(), log, repair: false };
  try {
    const read = await readDocument(actionPlaces(paths).lastEnd, lastEndDocument, options);
    return read.kind === 'ok' ? read.value : undefined;
  } catch (error) {
    if (!(error instanceof ReeveError)) throw error;
    log.warning(describeError(error));
    return undefined;
  }
}
