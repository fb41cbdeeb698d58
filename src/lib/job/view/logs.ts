// `job logs ID`: what the container of a job wrote, as it lies beside its artifacts. stdout goes to stdout and stderr to stderr,
// as `docker logs` has it; how lines of the two followed each other is not known any more. Nothing is kept in memory.
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Context } from '../../context.ts';
import { InputError } from '../../errors.ts';
import { openJobsDir } from '../../jobs/records.ts';
import type { Outcome } from '../../outcome.ts';
import { workspacePaths } from '../workspace/paths.ts';
import { describeJob } from './describe.ts';
import { requireJob } from './gather.ts';
import { createTail, type Sink, type Tail } from './tail.ts';

export type LogsRequest = {
  id: string;
  /** Until the job has ended. */
  follow: boolean;
  /** Undefined: nothing is printed, as the answer tells where the files lie. */
  sinks: { stdout: Sink; stderr: Sink } | undefined;
};

type LogsContext = Pick<Context, 'paths' | 'overrides' | 'clock' | 'log' | 'signal'>;

/** The files grow about once a second. */
const pauseMs = 500;

/** Throws InputError for an id that no job has, or where its run is not known any more. */
export async function showLogs(ctx: LogsContext, { id, follow, sinks }: LogsRequest): Promise<Outcome> {
  const facts = await requireJob(ctx, id, 'show the log of');
  const { claim, key } = facts;
  if (claim === undefined) {
    throw new InputError(`cannot show the log of job ${key}: its claim is damaged, and its run is not known`);
  }
  const files = workspacePaths(ctx, claim);
  const tails =
    sinks === undefined
      ? []
      : [createTail(files.stdout, sinks.stdout), createTail(files.stderr, sinks.stderr)];
  await copyLogs(ctx, tails, () => !follow || hasEnded(ctx, key));
  const sizes = { stdout: await readSize(files.stdout), stderr: await readSize(files.stderr) };
  if (sizes.stdout === null && sizes.stderr === null) ctx.log.info(`job ${key} has no output here`);
  const { id: jobId, run } = describeJob(facts);
  const file = (name: 'stdout' | 'stderr'): object => ({ path: files[name], sizeBytes: sizes[name] });
  const data = { job: jobId, run, open: !hasEnded(ctx, key), stdout: file('stdout'), stderr: file('stderr') };
  return { outcome: 'done', text: [], data };
}

async function copyLogs(ctx: LogsContext, tails: readonly Tail[], isEnough: () => boolean): Promise<void> {
  for (let isLast = false; !isLast; ) {
    // Asked before the files are read: what was written before the end is there then.
    isLast = isEnough();
    for (const tail of tails) await tail.copy(ctx.signal);
    if (ctx.signal.aborted || (tails.length > 0 && tails.every(({ isOver }) => isOver))) return;
    if (!isLast) await ctx.clock.sleep(pauseMs, ctx.signal);
  }
}

/** Its completion is decided once its log is whole. */
function hasEnded({ paths }: LogsContext, key: string): boolean {
  const directory = join(openJobsDir(paths), key);
  return !existsSync(directory) || existsSync(join(directory, 'completion.json'));
}

async function readSize(path: string): Promise<number | null> {
  return (await stat(path).catch(() => undefined))?.size ?? null;
}
