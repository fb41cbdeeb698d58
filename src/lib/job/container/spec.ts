// The container that a job is, as the engine is asked for it. Pure.
import type { BindMount, ContainerSpec } from '../../docker/types.ts';
import { jobLabel, runLabel } from '../../ploy/names.ts';
import type { Execution } from '../../ploy/plan.ts';

export type JobContainer = {
  key: string;
  runId: string;
  jobId: string;
  execution: Extract<Execution, { kind: 'container' }>;
  binds: readonly BindMount[];
  /** Undefined: the engine's own. */
  network: string | undefined;
  limits: ResourceLimits;
};

export type ResourceLimits = { cpus?: number; memoryBytes?: number; storageSize?: string };

/** The same for every run of the job: a second one is refused by the engine as the first one's name. */
export function containerName(key: string): string {
  return `reeve-job-${key}`;
}

export function buildJobContainer(job: JobContainer): ContainerSpec {
  const { execution } = job;
  return {
    name: containerName(job.key),
    image: execution.image,
    env: execution.env,
    labels: { [runLabel]: job.runId, [jobLabel]: job.jobId },
    ...(execution.command.length === 0 ? {} : { command: execution.command }),
    workingDir: execution.workingDir,
    ...job.limits,
    ...(job.network === undefined ? {} : { networkMode: job.network }),
    restart: 'no',
    ports: [],
    volumes: [],
    binds: job.binds,
    logs: 'whole',
  };
}
