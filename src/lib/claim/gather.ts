// Reads the node's jobs: one list of containers, an inspection of each that has ended a moment ago and is nobody's, and our records.
import type { Context } from '../context.ts';
import type { ContainerSummary, Engine } from '../docker/types.ts';
import { describeError } from '../errors.ts';
import { listEndedJobs, listOpenJobs, readOpenJob } from '../jobs/book.ts';
import { jobKey } from '../jobs/records.ts';
import { setStraysAside } from '../jobs/strays.ts';
import { listHeldLocks } from '../lock/list-locks.ts';
import { jobLock } from '../lock/names.ts';
import { jobLabel, runLabel } from '../ploy/names.ts';
import type { ClaimFacts, JobContainer, OpenJob } from './facts.ts';

/** Throws UnavailableError where the engine does not answer: nothing may be claimed by a node that does not know itself. */
export async function listJobContainers(engine: Engine): Promise<readonly ContainerSummary[]> {
  return await engine.listContainers({ labels: [runLabel, jobLabel] });
}

/** Containers first: whatever is made after them has its records by the time that these are read. */
export async function gatherClaimFacts(
  ctx: Context,
  engine: Engine,
  rows: readonly ContainerSummary[],
): Promise<ClaimFacts> {
  await setStraysAside(ctx);
  const open = await gatherOpenJobs(ctx);
  const ended = new Set(await listEndedJobs(ctx));
  const known = new Set([...open.map(({ key }) => key), ...ended]);
  const containers: JobContainer[] = [];
  for (const row of rows) {
    const container = toContainer(row);
    if (container !== undefined) containers.push(await lookAt(engine, row, container, known));
  }
  return { containers, open, ended };
}

/** Undefined where a label is blank: then it is no job's. */
function toContainer({ id, labels, state }: ContainerSummary): JobContainer | undefined {
  const runId = labels[runLabel]?.trim() ?? '';
  const jobId = labels[jobLabel]?.trim() ?? '';
  return runId === '' || jobId === '' ? undefined : { id, runId, jobId, key: jobKey(jobId), state };
}

async function lookAt(
  engine: Engine,
  row: ContainerSummary,
  container: JobContainer,
  known: ReadonlySet<string>,
): Promise<JobContainer> {
  const hasEnded = row.state === 'exited' || row.state === 'dead';
  if (!hasEnded || known.has(container.key) || isLongEnded(row.statusText)) return container;
  try {
    const details = await engine.inspectContainer(row.id);
    if (details === undefined) return { ...container, state: 'removing' };
    const { state, exitCode, startedAt, finishedAt } = details;
    return { ...container, state, end: { exitCode, startedAt, finishedAt } };
  } catch (error) {
    return { ...container, trouble: describeError(error) };
  }
}

/** By the engine's words, `Exited (0) 3 hours ago`: the original removes no container, so there may be very many old ones. */
function isLongEnded(statusText: string): boolean {
  const ago = / (\d+|about an) (minute|hour|day|week|month|year)s? ago/i.exec(statusText);
  if (ago === null) return false;
  return ago[2] !== 'minute' || Number(ago[1]) >= 3;
}

async function gatherOpenJobs(ctx: Context): Promise<OpenJob[]> {
  const keys = await listOpenJobs(ctx);
  const held = await listHeldLocks(ctx.paths.locksDir, keys.map(jobLock));
  const jobs: OpenJob[] = [];
  for (const key of keys) {
    const job = await gatherOpenJob(ctx, key, held.has(jobLock(key)));
    if (job !== undefined) jobs.push(job);
  }
  return jobs;
}

/** Undefined where it has ended meanwhile: then it is among those that are read next. */
async function gatherOpenJob(ctx: Context, key: string, isHeld: boolean): Promise<OpenJob | undefined> {
  const nothing = { key, isHeld, claim: 'whole', completion: 'none' } as const;
  if (isHeld) return nothing;
  try {
    const records = await readOpenJob(ctx, key);
    if (records === undefined) return undefined;
    const { claim, completion } = records;
    return {
      ...nothing,
      claim: claim === undefined ? 'lost' : 'whole',
      completion:
        completion === undefined ? 'none' : completion.settled === undefined ? 'undelivered' : 'settled',
    };
  } catch (error) {
    return { ...nothing, trouble: describeError(error) };
  }
}
