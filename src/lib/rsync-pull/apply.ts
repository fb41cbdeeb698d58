// The steps of a pull, one after another. One that fails is told, and the others go on: the next pull finds what is left to do.
import { join } from 'node:path';
import { noteArrival } from '../actions/arrivals.ts';
import { removeEntry } from '../actions/leave.ts';
import { actionPlaces } from '../actions/places.ts';
import { type ResultContext, refuseAction } from '../actions/results.ts';
import type { ActionsConfig } from '../config/config.ts';
import type { BaseContext } from '../context.ts';
import { describeError, ReeveError, StepError } from '../errors.ts';
import { writeFileAtomic } from '../state/atomic-file.ts';
import { appendHistory, type HistoryEvent } from '../state/history.ts';
import type { PullStep } from './steps.ts';

export type ApplyContext = ResultContext & Pick<BaseContext, 'signal'>;

export type Applied = {
  /** Names of files. */
  handedOver: string[];
  refused: string[];
  errors: ReeveError[];
};

type Handlers = {
  [Kind in PullStep['kind']]: (
    ctx: ApplyContext,
    step: Extract<PullStep, { kind: Kind }>,
    node: string,
  ) => Promise<'done' | 'known'>;
};

const handlers: Handlers = {
  'hand-over': async (ctx, { name, key, bytes }) => {
    await noteArrival(ctx, key);
    await writeFileAtomic(join(actionPlaces(ctx.paths).inbox, name), bytes);
    return 'done';
  },
  refuse: async (ctx, { actionId, key, reason }, node) =>
    (await refuseAction(ctx, { node, actionId, key, reason })) === 'refused' ? 'done' : 'known',
  drop: async (_, { path }) => {
    const target = Buffer.from(path);
    await removeEntry({ text: target.toString(), path: target });
    return 'done';
  },
};

export async function applyPull(
  ctx: ApplyContext,
  { node }: Pick<ActionsConfig, 'node'>,
  steps: readonly PullStep[],
): Promise<Applied> {
  const applied: Applied = { handedOver: [], refused: [], errors: [] };
  const events: HistoryEvent[] = [];
  for (const step of steps) {
    if (ctx.signal.aborted) break;
    try {
      const handle = handlers[step.kind] as (...args: [ApplyContext, PullStep, string]) => Promise<string>;
      if ((await handle(ctx, step, node)) === 'known') continue;
      if (step.kind === 'drop') {
        ctx.log.debug(`${JSON.stringify(Buffer.from(step.path).toString())} is removed: ${step.reason}`);
        continue;
      }
      tellStep(ctx, step, applied);
      events.push(renderEvent(ctx, step));
    } catch (error) {
      if (!(error instanceof ReeveError)) throw error;
      applied.errors.push(error);
    }
  }
  await appendHistory(ctx.paths, events).catch((error: unknown) => {
    applied.errors.push(error instanceof ReeveError ? error : new StepError(describeError(error)));
  });
  return applied;
}

function tellStep({ log }: ApplyContext, step: Exclude<PullStep, { kind: 'drop' }>, applied: Applied): void {
  if (step.kind === 'hand-over') {
    applied.handedOver.push(step.name);
    log.info(`new: ${step.name}`, { why: step.reason });
    return;
  }
  applied.refused.push(step.name);
  log.warning(`refused: ${step.name}`, { why: step.reason });
}

function renderEvent(
  { clock, runId }: ApplyContext,
  step: Exclude<PullStep, { kind: 'drop' }>,
): HistoryEvent {
  const isRefused = step.kind === 'refuse';
  return {
    ...{ at: clock.now().toISOString(), run: runId, concern: 'rsync-pull' },
    ...{ action: `${step.kind} ${step.name}`, reason: step.reason, outcome: isRefused ? 'refused' : 'done' },
  };
}
