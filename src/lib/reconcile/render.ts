// How a tick and a plan are told: short lines for people, the same as data. Pure.
import type { Outcome, OutcomeKind } from '../outcome.ts';
import { foldLines } from '../report/table.ts';
import { formatDuration } from '../time.ts';
import type { Facts, Stranger } from './facts.ts';
import { forecast } from './forecast.ts';
import type { LoopResult } from './loop.ts';
import type { Plan } from './plan.ts';
import type { Trouble } from './report-status.ts';
import type { ActionReport } from './session.ts';

export function renderReconcile(
  { actions }: { actions: readonly ActionReport[] },
  result: LoopResult,
): Outcome {
  const { troubles, deferred, facts, unfinished } = result;
  const failed = actions.filter(({ outcome }) => outcome === 'failed');
  const outcome = outcomeOf({ done: actions.length - failed.length, failed: failed.length, ...result });
  const summary = facts.desired.kind === 'none' ? facts.desired.reason : summarize(actions, unfinished);
  const text = [
    ...troubles.map((trouble) => describeTrouble(trouble, facts.now)),
    ...deferred.map(({ key, reason }) => `${key}: deferred: ${reason}`),
    ...facts.strangers.map(describeStranger),
    summary,
  ];
  return { outcome, text: [...new Set(text)], data: { actions, troubles, deferred, unfinished } };
}

export function renderPlan(facts: Facts, plan: Plan): Outcome {
  if (facts.desired.kind === 'none') {
    return {
      outcome: 'nothing-to-do',
      text: [facts.desired.reason],
      data: { actions: [], waiting: [], deferred: [], errors: [] },
    };
  }
  const announced = plan.services.flatMap(({ key, headline }) => {
    if (headline === undefined) return [];
    const [project = '', service = ''] = key.split('/');
    const { ms, isLongest } = forecast(facts, key, headline.action);
    const action = { action: headline.action, project, service, reason: headline.reason, expectedMs: ms };
    return [{ action, length: `${isLongest ? 'at most' : 'about'} ${formatDuration(ms)}` }];
  });
  const waiting = plan.services.flatMap(({ key, problem, retryAt }): Trouble[] =>
    problem === undefined ? [] : [{ key, message: problem, ...(retryAt && { retryAt }) }],
  );
  const text = [
    ...announced.map(
      ({ action: { action, project, service, reason }, length }) =>
        `${action} ${project}/${service}: ${reason} (${length})`,
    ),
    ...waiting.map((trouble) =>
      describeTrouble({ ...trouble, message: foldLines(trouble.message) }, facts.now),
    ),
    ...plan.deferred.map(({ key, reason }) => `${key}: deferred: ${reason}`),
    ...plan.errors.map(({ key, error }) => `${key}: ${error}`),
    ...facts.strangers.map(describeStranger),
  ];
  const actions = announced.map(({ action }) => action);
  const data = { actions, waiting, deferred: plan.deferred, errors: plan.errors };
  if (actions.length > 0) return { outcome: 'pending', text, data };
  if (plan.errors.length > 0 || waiting.length > 0) return { outcome: 'failed', text, data };
  return { outcome: 'nothing-to-do', text: [...text, 'nothing to do'], data };
}

function outcomeOf(counts: {
  done: number;
  failed: number;
  troubles: LoopResult['troubles'];
  deferred: LoopResult['deferred'];
}): OutcomeKind {
  const held = new Set(counts.deferred.map(({ key }) => key));
  const troubled = counts.troubles.some(({ key }) => !held.has(key));
  if (counts.failed > 0 || troubled) return counts.done > 0 ? 'partial' : 'failed';
  if (counts.done > 0) return 'done';
  return counts.deferred.length > 0 ? 'deferred' : 'nothing-to-do';
}

function describeTrouble({ key, message, retryAt }: Trouble, now: Date): string {
  if (retryAt === undefined) return `${key}: ${message}`;
  const leftSeconds = Math.max(0, Math.ceil((Date.parse(retryAt) - now.getTime()) / 1000));
  return `${key}: tried again in ${formatDuration(leftSeconds * 1000)}: ${message}`;
}

function describeStranger({ name, why }: Stranger): string {
  return `left alone: container ${name}: ${why}`;
}

/** `7 steps: 2 create, 2 serve, ...`; each was told on stderr as it was done. */
function summarize(actions: readonly ActionReport[], unfinished: boolean): string {
  const counts = new Map<string, number>();
  for (const { action, outcome } of actions) {
    // What an abort tells is the failure of a release, not its own.
    const word = outcome === 'failed' && action !== 'abort' ? `failed ${action}` : action;
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const parts = [...counts].map(([word, count]) => `${count} ${word}`).join(', ');
  const steps = actions.length === 1 ? '1 step' : `${actions.length} steps`;
  const told = actions.length === 0 ? 'nothing to do' : `${steps}: ${parts}`;
  return unfinished ? `${told}; not finished, the next run goes on` : told;
}
