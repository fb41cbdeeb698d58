// How this node stands with the jobs of its control plane: slots, what waits to be delivered, the last claim. Read-only.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { JobsConfig } from '../config/config.ts';
import type { Context } from '../context.ts';
import { describeError } from '../errors.ts';
import { listOpenJobs, readJob } from '../jobs/book.ts';
import { openJobsDir } from '../jobs/records.ts';
import { foldLines } from '../report/table.ts';
import type { RunRecord } from '../state/run-record.ts';
import { formatDuration } from '../time.ts';
import { ago } from './ago.ts';

export type JobsView = {
  /** As the control plane knows it. */
  node: string;
  open: number;
  concurrency: number;
  /** Of the open ones, by when it was claimed. */
  oldest: { job: string; run: string; claimedAt: string; ageMs: number } | null;
  /** Ids of jobs that have ended without the server knowing. */
  undelivered: readonly string[];
  /** Keys of open jobs whose records cannot be read. */
  damaged: readonly string[];
  lastClaim: Pick<RunRecord, 'startedAt' | 'endedAt' | 'outcome' | 'exitCode'> | null;
};

export async function readJobsView(
  ctx: Context,
  { jobs, lastClaim, now }: { jobs: JobsConfig; lastClaim: RunRecord | undefined; now: Date },
): Promise<JobsView> {
  const entries = await Promise.all((await listOpenJobs(ctx)).map((key) => readEntry(ctx, key)));
  const open = entries.filter((entry) => entry !== undefined);
  const claims = open.flatMap(({ claim }) => (claim === undefined ? [] : [claim]));
  const [oldest] = claims.sort((a, b) => Date.parse(a.claimedAt) - Date.parse(b.claimedAt));
  return {
    node: jobs.nodeId,
    open: open.length,
    concurrency: jobs.concurrency,
    oldest: oldest === undefined ? null : describeOldest(oldest, now),
    undelivered: open
      .filter(({ isUndelivered }) => isUndelivered)
      .map(({ key, claim }) => claim?.jobId ?? key),
    damaged: open.filter(({ claim }) => claim === undefined).map(({ key }) => key),
    lastClaim: lastClaim === undefined ? null : pickRun(lastClaim),
  };
}

type Claimed = { jobId: string; runId: string; claimedAt: string };
type Entry = { key: string; claim: Claimed | undefined; isUndelivered: boolean };

/** Undefined where it has been closed meanwhile. */
async function readEntry(ctx: Context, key: string): Promise<Entry | undefined> {
  const place = { key, directory: join(openJobsDir(ctx.paths), key), isOpen: true };
  try {
    const { claim, completion } = await readJob(ctx, place, false);
    if (claim === undefined && !existsSync(place.directory)) return undefined;
    return { key, claim, isUndelivered: completion !== undefined && completion.settled === undefined };
  } catch (error) {
    ctx.log.warning(`cannot read job ${key}: ${describeError(error)}`);
    return { key, claim: undefined, isUndelivered: false };
  }
}

function describeOldest({ jobId, runId, claimedAt }: Claimed, now: Date): NonNullable<JobsView['oldest']> {
  return { job: jobId, run: runId, claimedAt, ageMs: now.getTime() - Date.parse(claimedAt) };
}

function pickRun({ startedAt, endedAt, outcome, exitCode }: RunRecord): NonNullable<JobsView['lastClaim']> {
  return { startedAt, endedAt, outcome, exitCode };
}

export function renderJobsView(view: JobsView, now: Date): string[] {
  const { node, open, concurrency, oldest, undelivered, damaged, lastClaim } = view;
  const first =
    oldest === null
      ? ''
      : `, the oldest for ${formatDuration(Math.max(0, oldest.ageMs))} (${foldLines(oldest.job)})`;
  const last =
    lastClaim === null
      ? 'never claimed'
      : `last claim run ${ago(lastClaim.endedAt ?? lastClaim.startedAt, now)}: ${lastClaim.outcome ?? 'running'}`;
  return [
    `jobs of ${node}: ${open} of ${concurrency} open${first}; ${last}`,
    ...(undelivered.length === 0
      ? []
      : [`jobs that the server does not know to have ended: ${foldLines(undelivered.join(', '))}`]),
    ...(damaged.length === 0 ? [] : [`jobs whose claim is damaged: ${foldLines(damaged.join(', '))}`]),
  ];
}
