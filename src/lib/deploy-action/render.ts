// What a run of deploy-action answers and writes into the history. Pure.
import type { Outcome } from '../outcome.ts';
import type { HistoryEvent } from '../state/history.ts';
import type { StepResult } from './apply.ts';

/** `error`: the step itself failed, and is tried again by the next run. */
export type Result = StepResult & { error?: string };

/** Far more than a person reads. */
const mostLines = 200;

export function renderRun(results: readonly Result[]): Outcome {
  const told = results.filter(({ line, error }) => line !== '' || error !== undefined);
  const good = told.filter((result) => !isBad(result));
  const actions = told.flatMap(({ actionId, service, end, error }) =>
    actionId === undefined ? [] : [{ actionId, service, ...end, error }],
  );
  const lines = told.map(({ line, error }) =>
    error === undefined ? line : `${line}${line && ': '}${error}`,
  );
  const more = lines.length > mostLines ? [`and ${lines.length - mostLines} more`] : [];
  const text = [...lines.slice(0, mostLines), ...more];
  if (told.length === 0) return { outcome: 'nothing-to-do', text: [], data: { actions } };
  const bad = good.length === 0 ? 'failed' : 'partial';
  return { outcome: good.length === told.length ? 'done' : bad, text, data: { actions } };
}

/** What ended otherwise than well is somebody's to look at. */
function isBad({ end, error }: Result): boolean {
  return error !== undefined || (end !== undefined && end.outcome !== 'succeeded');
}

const outcomes = { succeeded: 'done', failed: 'failed', rejected: 'refused', unknown: 'unknown' } as const;

/** Undefined where nothing has happened to an action. */
export function toEvent(
  result: Result,
  about: { at: string; run: string; reason: string },
): HistoryEvent | undefined {
  const { end, actionId, service } = result;
  if (end === undefined) return undefined;
  const { reason, ...when } = about;
  // Of both, people are shown one.
  const name = (text: string): string => (actionId === undefined ? text : `${actionId}: ${text}`);
  return {
    ...{ ...when, concern: 'deploy-action', action: 'redeploy' },
    ...(service === undefined ? {} : { service }),
    reason: name(reason),
    outcome: outcomes[end.outcome],
    ...(end.reason === undefined || end.outcome === 'succeeded' ? {} : { error: name(end.reason) }),
  };
}
