// Records of jobs as `claim` and `job run` leave them, on a machine that needs no engine and no server for them.
import { mkdirSync, renameSync, utimesSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type JobPlace, openJob, writeCompletion, writeProgress } from '../../src/lib/jobs/book.ts';
import type { JobCompletion, JobProgress } from '../../src/lib/jobs/records.ts';
import { systemClock } from '../../src/lib/time.ts';
import { type Machine, makeMachine } from './machine.ts';

export const hourMs = 60 * 60_000;

export type RecordedJob = { progress?: Partial<JobProgress>; completion?: Partial<JobCompletion> };

export type JobRecordsMachine = Machine & {
  placeOf(id: string): JobPlace;
  /** A job that was claimed an hour ago. */
  open(id: string, records?: RecordedJob): Promise<void>;
  /** A job that ended so long ago, delivered unless it says otherwise. */
  end(id: string, agoMs?: number, records?: RecordedJob): Promise<void>;
  /** The files beside its artifacts. Answers their paths. */
  writeLogs(id: string, stdout: string, stderr: string): Promise<{ stdout: string; stderr: string }>;
};

export function makeJobRecords(): JobRecordsMachine {
  const machine = makeMachine({
    jobs: { server_url: 'https://ploy.example', node_id: 'node-1', concurrency: 4 },
  });
  const { stateDir, root } = machine;
  const placeOf = (key: string): JobPlace => ({ key, directory: join(stateDir, 'jobs', key), isOpen: true });
  const open: JobRecordsMachine['open'] = async (jobId, { progress, completion } = {}) => {
    const at = new Date(Date.now() - hourMs).toISOString();
    const payload = { job_name: 'mig-0' };
    const ctx = { paths: { stateDir }, clock: systemClock } as Parameters<typeof openJob>[0];
    await openJob(ctx, { source: 'claim', claimedAt: at, runId: 'run-1', jobId, payload });
    if (progress !== undefined) {
      const logs = { nextChunk: 0, sentBytes: 0, closed: false };
      await writeProgress(placeOf(jobId), { phase: 'running', since: at, logs, steps: [], ...progress });
    }
    if (completion === undefined) return;
    const body = { status: 'Success' } as const;
    await writeCompletion(placeOf(jobId), { body, decidedAt: at, attempts: 1, ...completion });
  };
  return {
    ...{ ...machine, placeOf, open },
    end: async (id, agoMs = 0, records = {}) => {
      const endedAt = new Date(Date.now() - agoMs);
      const settled = { at: endedAt.toISOString(), how: 'acknowledged' as const };
      await open(id, { completion: { settled }, ...records });
      mkdirSync(join(stateDir, 'jobs-ended'), { recursive: true });
      const directory = join(stateDir, 'jobs-ended', id);
      renameSync(placeOf(id).directory, directory);
      utimesSync(directory, endedAt, endedAt);
    },
    writeLogs: async (id, stdout, stderr) => {
      const directory = join(root, 'cache/jobs/runs/run-1/artifacts', id);
      mkdirSync(directory, { recursive: true });
      const files = { stdout: join(directory, 'stdout.log'), stderr: join(directory, 'stderr.log') };
      await writeFile(files.stdout, stdout);
      await writeFile(files.stderr, stderr);
      return files;
    },
  };
}
