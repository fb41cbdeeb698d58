// `reeve claim`: one pass over the jobs that this node has already, then claims until the window ends. Jobs run in processes of
// their own; an activation that is killed leaves nothing that the next one would not find.
import { requireIdentity } from '../bootstrap/require.ts';
import { requireSection } from '../config/rules.ts';
import type { BaseContext, Context } from '../context.ts';
import { openControlPlane } from '../control-plane/client.ts';
import { openEngine } from '../docker/client.ts';
import type { ContainerSummary } from '../docker/types.ts';
import { UnavailableError } from '../errors.ts';
import { stayInUnit } from '../exec/systemd.ts';
import { loadHttp } from '../http/client.ts';
import { countAnswers } from '../jobs/answers.ts';
import { forgetEndedJobs } from '../jobs/retention.ts';
import { withLock } from '../lock/with-locks.ts';
import type { Outcome } from '../outcome.ts';
import { recordRun } from '../state/record-run.ts';
import { openRunners } from './children.ts';
import { gatherClaimFacts, listJobContainers } from './gather.ts';
import { planClaim } from './plan.ts';
import { type PollReport, pollForWindow } from './poll.ts';
import type { ClaimSession } from './session.ts';
import type { ClaimStep } from './steps.ts';

export type ClaimOptions = { windowMs: number; waitMs: number; loadContext(): Promise<Context> };

export async function runClaim(base: BaseContext, options: ClaimOptions): Promise<Outcome> {
  const startedAtMs = performance.now();
  try {
    return await claimUnderLock(await options.loadContext(), options);
  } finally {
    await stayInUnit(base, startedAtMs, options.windowMs);
  }
}

async function claimUnderLock(ctx: Context, options: ClaimOptions): Promise<Outcome> {
  const jobs = requireSection(ctx.config, 'jobs');
  const work = async (): Promise<Outcome> => {
    const session = openSession(ctx, jobs, Math.random);
    // Asked while the begin of the run is written down: reading changes nothing.
    const rows = listJobContainers(session.engine);
    rows.catch(() => {});
    try {
      return await recordRun(ctx, 'claim', async () => {
        await requireIdentity(ctx, jobs);
        session.controlPlane.prepare();
        return await claim(session, await rows, options.windowMs);
      });
    } finally {
      session.engine.close();
      session.controlPlane.close();
    }
  };
  const held = withLock(ctx, 'claim', work, { waitMs: options.waitMs });
  // While the kernel is asked for the lock.
  loadHttp();
  return await held;
}

function openSession(ctx: Context, jobs: ClaimSession['jobs'], random: () => number): ClaimSession {
  const socket = ctx.config.cluster?.docker.socket ?? '/var/run/docker.sock';
  // A claim that is answered is a job that is ours: a stop waits for the answer, for ten seconds at most.
  const lasting = { ...ctx, signal: new AbortController().signal };
  return {
    ctx,
    jobs,
    engine: openEngine({ socket, log: ctx.log, signal: ctx.signal }),
    controlPlane: openControlPlane(lasting, jobs),
    runners: openRunners(ctx, random),
    random,
  };
}

async function claim(
  session: ClaimSession,
  rows: readonly ContainerSummary[],
  windowMs: number,
): Promise<Outcome> {
  const { ctx, engine, runners } = session;
  if (countAnswers(ctx) > 0) {
    const { acceptKeptAnswers } = await import('./accept.ts');
    for (const one of await acceptKeptAnswers(session)) if (one.kind === 'kept') ctx.log.warning(one.reason);
  }
  const facts = await gatherClaimFacts(ctx, engine, rows);
  let troubles: string[];
  let report: PollReport = { claimed: [], requests: 0, answers: 0 };
  try {
    troubles = await applySteps(session, planClaim(facts, ctx.clock.now()));
    if (!ctx.signal.aborted) report = await pollForWindow(session, windowMs);
  } finally {
    // Processes of jobs are waited for under the lock that they were started under.
    await runners.settle();
  }
  // What has ended since, or has still been there, the next pass looks at first.
  const left = new Set(facts.containers.map(({ key }) => key));
  await forgetEndedJobs(ctx, new Set([...facts.ended].filter((key) => !left.has(key))));
  return renderReport(report, [...troubles, ...describeKept(session), ...describeUnfinished(session)]);
}

/** Most passes find nothing to do, and load nothing for it. */
async function applySteps(session: ClaimSession, steps: readonly ClaimStep[]): Promise<string[]> {
  if (steps.length === 0) return [];
  const { applyClaimSteps } = await import('./apply.ts');
  return await applyClaimSteps(session, steps);
}

/** Their reasons have been told. */
function describeKept({ ctx }: ClaimSession): string[] {
  const count = countAnswers(ctx);
  return count === 0 ? [] : [`answers to claims that are not settled: ${count}`];
}

function describeUnfinished({ runners }: ClaimSession): string[] {
  return [...runners.unfinished].map(([key, why]) => `job ${key} is not finished: ${why}`);
}

/** Throws UnavailableError where the last words of the server were none: whoever watches the units has to know. */
function renderReport(report: PollReport, troubles: readonly string[]): Outcome {
  const { claimed, trouble } = report;
  if (trouble !== undefined) throw new UnavailableError([trouble, ...troubles].join('; '));
  const count = claimed.length === 1 ? '1 job' : `${claimed.length} jobs`;
  const text = [claimed.length === 0 ? 'no job was offered' : `claimed ${count}`, ...troubles];
  const data = { claimed, troubles };
  if (troubles.length > 0) return { outcome: 'partial', text, data };
  return { outcome: claimed.length === 0 ? 'nothing-to-do' : 'done', text, data };
}
