// The container of a job, wherever the job's records end: by its id, by its name, which is the same for every run of the job,
// and only with the labels that say it is the job's.
import type { ContainerDetails, Engine } from '../docker/types.ts';
import type { JobClaim, JobProgress } from '../jobs/records.ts';
import { jobLabel, runLabel } from '../ploy/names.ts';
import { containerName } from './container/spec.ts';
import type { JobFacts } from './plan.ts';

export async function findContainer(
  engine: Engine,
  job: { key: string; claim: JobClaim; progress: JobProgress },
): Promise<ContainerDetails | undefined> {
  const { claim, progress } = job;
  const id = progress.containerId ?? claim.containerId ?? containerName(job.key);
  const found = await engine.inspectContainer(id);
  if (found === undefined) return undefined;
  const isOurs = found.labels[jobLabel] === claim.jobId && found.labels[runLabel] === claim.runId;
  return isOurs ? found : undefined;
}

export function toContainerFact(found: ContainerDetails | undefined): JobFacts['container'] {
  switch (found?.state) {
    case undefined:
    case 'removing':
      return 'none';
    case 'created':
      return 'created';
    case 'running':
    case 'paused':
    case 'restarting':
      return 'running';
    case 'exited':
    case 'dead':
      return 'ended';
  }
}
