// What was done with an action, in the history of this machine. It stands in the action's own file as well: where there is no room for
// it, that is told, and nothing is kept from going on.
import type { Context } from '../context.ts';
import { describeError } from '../errors.ts';
import { appendHistory, type HistoryEvent } from '../state/history.ts';

type Note = Pick<HistoryEvent, 'action' | 'reason' | 'outcome' | 'error'>;

export async function noteHistory(
  { paths, clock, runId, log }: Pick<Context, 'paths' | 'clock' | 'runId' | 'log'>,
  note: Note,
): Promise<void> {
  const event = { at: clock.now().toISOString(), run: runId, concern: 'action', ...note };
  await appendHistory(paths, [event]).catch((error: unknown) => log.warning(describeError(error)));
}

const told = new Set<string>();

/** What stands in the way for long, once in each process: it may look every second. */
export function warnOnce({ log }: Pick<Context, 'log'>, text: string): void {
  if (told.has(text)) return;
  told.add(text);
  log.warning(text);
}
