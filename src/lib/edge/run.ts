// `reeve edge`: one tick under the edge's lock, told as an outcome.
import { requireRole } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { describeError, UnavailableError } from '../errors.ts';
import { ExitCode } from '../exit-codes.ts';
import { withLock } from '../lock/with-locks.ts';
import type { Outcome } from '../outcome.ts';
import { publishFailure } from '../publish/failure.ts';
import { recordRun } from '../state/record-run.ts';
import type { EdgeChange } from './balancer.ts';
import { foldChanges } from './history.ts';
import { openEdgeSession } from './open-session.ts';
import { describeTroubles } from './report.ts';
import type { EdgeSession } from './session.ts';
import { compareOnly, type EdgeTick, publisherOf, runTick } from './tick.ts';

/** What the longest part of a tick may take: a document of Caddy's with thousands of certificates. In milliseconds. */
const deadlineMs = 120_000;

export async function runEdge(
  ctx: Context,
  { waitMs, dryRun }: { waitMs: number; dryRun: boolean },
): Promise<Outcome> {
  const edge = requireRole(ctx.config, 'edge', 'edge');
  if (dryRun)
    return renderComparison(await compareOnly(await openEdgeSession(ctx, edge, { readOnly: true })));
  const now = ctx.clock.now();
  const step = {
    name: 'tick',
    startedAt: now.toISOString(),
    deadlineAt: new Date(now.getTime() + deadlineMs).toISOString(),
  };
  const work = async (): Promise<Outcome> => {
    const session = await openEdgeSession(ctx, edge, { readOnly: false });
    try {
      return renderTick(await runTick(session));
    } catch (error) {
      await tellFailure(session, error);
      throw error;
    }
  };
  const run = (): Promise<Outcome> => recordRun(ctx, 'edge', work, { step, goesOnUnrecorded: true });
  return await withLock(ctx, 'edge', run, { waitMs });
}

/** A tick that could not be done tells so in the edge's status, if the store can be written. */
async function tellFailure(session: EdgeSession, error: unknown): Promise<void> {
  const { ctx, balancer, memory } = session;
  const report = { balancer: balancer.name, applied: memory.applied, rejected: [], repairs: memory.repairs };
  try {
    await publishFailure(publisherOf(session), describeError(error), { edge: report });
  } catch (second) {
    // A store that is gone is told by the error itself.
    if (describeError(second) === describeError(error)) return;
    ctx.log.warning(`cannot publish the failure: ${describeError(second)}`);
  }
}

function renderTick(tick: EdgeTick): Outcome {
  const { changes, troubles } = tick;
  if (troubles.length === 0)
    return { outcome: changes.length > 0 ? 'done' : 'nothing-to-do', ...describe(tick) };
  return {
    outcome: changes.length > 0 ? 'partial' : 'failed',
    exitCode: exitCodeOf(tick),
    ...describe(tick),
  };
}

function renderComparison(tick: EdgeTick): Outcome {
  const { text, data } = describe(tick);
  const told = { text: [...foldChanges(tick.changes).map(describeChange), ...text], data };
  if (tick.troubles.length > 0) return { outcome: 'failed', exitCode: exitCodeOf(tick), ...told };
  return { outcome: tick.changes.length > 0 ? 'pending' : 'nothing-to-do', ...told };
}

function exitCodeOf({ troubles }: EdgeTick): ExitCode {
  const isUnavailable = troubles.some(({ error }) => error instanceof UnavailableError);
  return isUnavailable ? ExitCode.unavailable : ExitCode.failed;
}

function describe({
  changes,
  troubles,
  domains,
  backends,
}: EdgeTick): Required<Pick<Outcome, 'text' | 'data'>> {
  const summary = `${count(domains, 'domain')}, ${count(backends, 'backend')}`;
  return {
    text: [
      ...describeTroubles(troubles),
      `${describeRest(changes, troubles)}${summary}${describeLack(troubles)}`,
    ],
    data: {
      actions: changes,
      troubles: troubles.map(({ subject, message }) => ({ subject, message })),
      domains,
      backends,
    },
  };
}

function describeRest(changes: EdgeTick['changes'], troubles: EdgeTick['troubles']): string {
  return changes.length === 0 && troubles.length === 0 ? 'nothing to do: ' : '';
}

/** What of it is not served as it should be, after its lines. */
function describeLack(troubles: EdgeTick['troubles']): string {
  if (troubles.length === 0) return '';
  const parts = ['balancer', 'caddy'].filter((part) => troubles.some(({ subject }) => subject === part));
  if (parts.length > 0) return `; not in force: ${parts.join(', ')}`;
  return `; ${count(troubles.length, 'trouble')}, see above`;
}

function describeChange({ action, subject, reason }: EdgeChange): string {
  return `${action} ${subject}: ${reason}`;
}

function count(howMany: number, what: string): string {
  return howMany === 1 ? `1 ${what}` : `${howMany} ${what}s`;
}
