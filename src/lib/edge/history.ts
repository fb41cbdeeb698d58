// What an edge has done, for `reeve history` and the journal. Thousands of servers of one reload are told as one line.
import type { Context } from '../context.ts';
import { appendHistory, type HistoryEvent } from '../state/history.ts';
import type { EdgeChange } from './balancer.ts';

/** More changes of one kind than this are counted. */
const mostTold = 20;

export async function recordChanges(ctx: Context, changes: readonly EdgeChange[]): Promise<void> {
  const told = foldChanges(changes);
  for (const { action, subject, reason } of told) ctx.log.info(`${action} ${subject}: ${reason}`);
  const at = ctx.clock.now().toISOString();
  const events = told.map(
    ({ action, subject, reason }): HistoryEvent => ({
      at,
      run: ctx.runId,
      concern: 'edge',
      action,
      reason: `${subject}: ${reason}`,
      outcome: 'done',
    }),
  );
  await appendHistory(ctx.paths, events);
}

/** In their order; those of a kind that has too many become one. */
export function foldChanges(changes: readonly EdgeChange[]): EdgeChange[] {
  const counts = new Map<string, number>();
  for (const { action } of changes) counts.set(action, (counts.get(action) ?? 0) + 1);
  const folded = new Set<string>();
  return changes.flatMap((change): EdgeChange[] => {
    const alike = counts.get(change.action) ?? 0;
    if (alike <= mostTold) return [change];
    if (folded.has(change.action)) return [];
    folded.add(change.action);
    return [{ ...change, subject: `${alike} times, ${change.subject} first` }];
  });
}
