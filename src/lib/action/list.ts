// `action list`: what waits for a person, what is approved and what is running; with all of it what has ended as well. Read-only.
import { requireRoot } from '../actions/control/root.ts';
import { readState } from '../actions/control/tree.ts';
import type { Context } from '../context.ts';
import { type ActionState, actionStates } from '../deploy-runner/layout.ts';
import type { Outcome } from '../outcome.ts';
import { foldLines, renderTable } from '../report/table.ts';
import { ago } from '../status/ago.ts';
import { type Summary, summarize } from './describe.ts';

const openStates: readonly ActionState[] = ['pending', 'approved', 'running'];

/** `partial` (exit 1) where something lies there that is no action. */
export async function listActions(ctx: Context, { all }: { all: boolean }): Promise<Outcome> {
  const root = await requireRoot(ctx);
  const summaries: Summary[] = [];
  const troubles: string[] = [];
  for (const state of all ? actionStates : openStates) {
    const { found, foreign, isCut } = await readState(root, state);
    summaries.push(...found.map(summarize));
    if (foreign > 0)
      troubles.push(`${state}: ${foreign} ${foreign === 1 ? 'name is' : 'names are'} no action's`);
    if (isCut) troubles.push(`${state}: there are more, which are not shown`);
  }
  const isWhole = troubles.length === 0 && summaries.every(({ problem }) => problem === null);
  return {
    outcome: isWhole ? 'done' : 'partial',
    text: [...renderList(summaries, ctx.clock.now(), all), ...troubles],
    data: { actions: summaries, troubles },
  };
}

const header = ['STATE', 'ACTION', 'TYPE', 'NODE', 'SERVICE', 'RISK', 'CREATED'];

function renderList(summaries: readonly Summary[], now: Date, all: boolean): string[] {
  if (summaries.length === 0)
    return [all ? 'there is no action' : 'no action is pending, approved or running'];
  const rows = summaries.map((summary) => {
    const { state, id, type, node, service, risk, createdAt, endedAt } = summary;
    return [
      ...[state, id, type, node, service, risk, createdAt === null ? null : ago(createdAt, now)],
      ...(all ? [endedAt === null ? null : ago(endedAt, now)] : []),
      describeWhy(summary),
    ].map((cell) => foldLines(cell ?? '-', 80));
  });
  return renderTable([...header, ...(all ? ['ENDED'] : []), 'WHY'], rows);
}

/** Why it has ended as it did; of what is open, why it was proposed. */
function describeWhy({ problem, reason, endReason, endedBy }: Summary): string | null {
  if (problem !== null) return `no use: ${problem}`;
  return endReason ?? (endedBy === null ? reason : `by ${endedBy}`);
}
