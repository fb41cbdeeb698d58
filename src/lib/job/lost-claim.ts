// The claim of a job whose record of it is damaged, taken from the container that has the job's labels: what runs there is not
// left behind with nobody to watch it.
import type { ContainerSummary, Engine } from '../docker/types.ts';
import { type JobRecords, restoreClaim } from '../jobs/book.ts';
import { type JobClaim, jobKey } from '../jobs/records.ts';
import { jobLabel, runLabel } from '../ploy/names.ts';

/**
 * Undefined where the job has no container: then nothing is left to be followed. Throws UnavailableError where that cannot be
 * told. Assumes the job's lock.
 */
export async function findLostClaim(
  engine: Engine,
  records: JobRecords,
  now: Date,
): Promise<JobClaim | undefined> {
  const rows = await engine.listContainers({ labels: [runLabel, jobLabel] });
  const claim = rebuildClaim(rows, records.key, now);
  if (claim !== undefined) await restoreClaim(records, claim);
  return claim;
}

/** Of two containers the one that runs is the job, else the first by its id. Pure. */
function rebuildClaim(rows: readonly ContainerSummary[], key: string, now: Date): JobClaim | undefined {
  const own = rows
    .flatMap(({ id, state, labels }) => toCandidate({ id, state, labels }, key))
    .sort((a, b) => (a.containerId < b.containerId ? -1 : 1));
  const found = own.find(({ isRunning }) => isRunning) ?? own[0];
  if (found === undefined) return undefined;
  const { runId, jobId, containerId } = found;
  return { source: 'adopted', claimedAt: now.toISOString(), runId, jobId, containerId };
}

type Candidate = { runId: string; jobId: string; containerId: string; isRunning: boolean };

/** A blank label says nothing. */
function toCandidate(
  { id, state, labels }: Pick<ContainerSummary, 'id' | 'state' | 'labels'>,
  key: string,
): Candidate[] {
  const runId = labels[runLabel]?.trim() ?? '';
  const jobId = labels[jobLabel]?.trim() ?? '';
  if (runId === '' || jobId === '' || jobKey(jobId) !== key) return [];
  const isRunning = state === 'running' || state === 'paused' || state === 'restarting';
  return [{ runId, jobId, containerId: id, isRunning }];
}
