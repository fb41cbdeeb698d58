// Jobs that have been claimed, and `job run` for them: a real engine, the strict server, real processes.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from './after-test.ts';
import { engineSocket, untilRemoved } from './engine.ts';
import { type JobsMachine, makeJobsMachine } from './jobs-machine.ts';
import { askDocker } from './node.ts';
import { claimJob, type JobOptions } from './ploy/jobs.ts';
import type { PloyJob } from './ploy/model.ts';
import type { Program } from './programs.ts';

export type JobRuns = JobsMachine & {
  readonly socket: string;
  /** Queued on the server, claimed by this node and written down, as `claim` does. */
  claim(options?: JobOptions): PloyJob;
  /** A record of an open job, or of one that has ended. */
  record(job: PloyJob, name: string): Record<string, unknown>;
  isClosed(job: PloyJob): boolean;
  /** Ids of the containers of the job, running or not. */
  containers(job: PloyJob): Promise<string[]>;
  /** A file of the job beside its artifacts. */
  artifact(job: PloyJob, name: string): string;
  /** Takes the place of a container of the original. */
  adopt(job: PloyJob, containerId: string): void;
};

export async function makeJobRuns(socket = engineSocket()): Promise<JobRuns> {
  const machine = await makeJobsMachine({ cluster: { docker: { socket } } });
  const { ploy } = machine;
  const at = (...names: string[]): string => join(machine.root, 'state', ...names);
  const idOf = (job: PloyJob): string => job.payload.job_id;
  const writeClaim = (job: PloyJob, claim: object): void => {
    const directory = at('jobs', idOf(job));
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const about = {
      version: 1,
      claimedAt: new Date().toISOString(),
      runId: job.payload.id,
      jobId: idOf(job),
    };
    writeFileSync(join(directory, 'claim.json'), JSON.stringify({ ...about, ...claim }), { mode: 0o600 });
  };
  const read = (path: string): string | undefined => {
    try {
      return readFileSync(path, 'utf8');
    } catch {
      return undefined;
    }
  };
  const containers: JobRuns['containers'] = async (job) => {
    const filter = `label=com.ploy.job_id=${idOf(job)}`;
    const text = await askDocker(socket, ['ps', '-aq', '--no-trunc', '--filter', filter]);
    return text.split('\n').filter((line) => line !== '');
  };
  const clear = async (): Promise<void> => {
    if (!existsSync(socket)) return;
    for (const job of ploy.state.jobs.values()) {
      const ids = await containers(job);
      if (ids.length > 0) await askDocker(socket, ['rm', '-f', ...ids]);
    }
  };
  onTestFinished(() => untilRemoved(clear));
  return {
    ...machine,
    socket,
    claim: (options = {}) => {
      const queued = ploy.queueJob(options);
      const job = claimJob(ploy.state, ploy.nodeId);
      if (job !== queued) throw new Error('another job was claimed');
      writeClaim(job, { source: 'claim', payload: { ...job.payload, node_id: ploy.nodeId } });
      return job;
    },
    record: (job, name) => {
      const text = read(at('jobs', idOf(job), name)) ?? read(at('jobs-ended', idOf(job), name));
      return JSON.parse(text ?? '{}');
    },
    isClosed: (job) => read(at('jobs-ended', idOf(job), 'claim.json')) !== undefined,
    containers,
    artifact: (job, name) =>
      read(join(machine.root, 'cache/jobs/runs', job.payload.id, 'artifacts', idOf(job), name)) ?? '',
    adopt: (job, containerId) => writeClaim(job, { source: 'adopted', containerId }),
  };
}

/** `job run`, once the job has said something, and its container. */
export async function startRunning(
  runs: JobRuns,
  job: PloyJob,
): Promise<{ program: Program; container: string }> {
  const program = runs.start(['job', 'run', job.payload.job_id, '--json']);
  await runs.ploy.waitUntil('its first line', () => job.chunks.size > 0);
  const [container = ''] = await runs.containers(job);
  return { program, container };
}

/** `job run`, killed after the job's first line. Gives the container. */
export async function killRunning(runs: JobRuns, job: PloyJob): Promise<string> {
  const { program, container } = await startRunning(runs, job);
  program.child.kill('SIGKILL');
  await program.ended;
  return container;
}

/** Writes over records of an open job and their previous copies. */
export function damageRecords(runs: JobRuns, job: PloyJob, names: readonly string[], text: string): void {
  for (const name of names) {
    for (const file of [name, `${name}.previous`])
      writeFileSync(join(runs.root, 'state/jobs', job.payload.job_id, file), text);
  }
}
