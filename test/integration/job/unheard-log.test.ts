// The log of a job that ended long ago, where the server could not take it then.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type JobRuns, makeJobRuns } from '../../support/job-runs.ts';
import { readLines } from '../../support/ploy/jobs.ts';
import type { PloyJob } from '../../support/ploy/model.ts';

const idOf = (job: PloyJob): string => job.payload.job_id;

/** Its container has ended, eleven minutes ago by its record, and nothing of its log was taken. */
async function leaveUnheard(runs: JobRuns, job: PloyJob): Promise<void> {
  const program = runs.start(['job', 'run', idOf(job)]);
  await expect.poll(() => runs.record(job, 'progress.json')['phase'], { timeout: 60_000 }).toBe('ended');
  program.child.kill('SIGKILL');
  await program.ended;
  const path = `state/jobs/${idOf(job)}/progress.json`;
  const progress = JSON.parse(readFileSync(join(runs.root, path), 'utf8'));
  runs.write(path, { ...progress, since: new Date(Date.now() - 660_000).toISOString() });
}

async function waitWhileAway(): Promise<void> {
  const runs = await makeJobRuns();
  const job = runs.claim({ command: 'echo one; echo two' });
  const heal = ['logs', 'status'].map((route) =>
    runs.ploy.faults.add({ route: route as 'logs', kind: 'answer', status: 503 }),
  );
  await leaveUnheard(runs, job);
  expect(await runs.reeve('job', 'run', idOf(job))).toMatchObject({ status: 69 });
  expect([job.completions, runs.record(job, 'progress.json')['logs']]).toMatchObject([[], { closed: false }]);
  for (const one of heal) one();
  expect(await runs.reeve('job', 'run', idOf(job))).toMatchObject({ status: 0 });
  expect([readLines(job, 'stdout'), job.status, job.events]).toEqual([['one', 'two'], 'Success', []]);
  expect(runs.ploy.state.violations).toEqual([]);
}

async function letGoWhereAllElseIsTaken(): Promise<void> {
  const runs = await makeJobRuns();
  const job = runs.claim({ command: 'echo one' });
  runs.ploy.faults.add({ route: 'logs', kind: 'answer', status: 503 });
  await leaveUnheard(runs, job);
  expect(await runs.reeve('job', 'run', idOf(job))).toMatchObject({ status: 0 });
  expect([job.status, job.chunks.size, runs.isClosed(job)]).toEqual(['Success', 0, true]);
  expect(job.events).toMatchObject([{ level: 'warn', message: expect.stringContaining('503') }]);
}

describe('P62, R30: the log of a job that has ended over ten minutes ago', { timeout: 300_000 }, () => {
  // Each waits a minute: two machines side by side, in one test, since what a helper leaves is cleared after the test that runs.
  it('waits on while the server is away, and is let go, and told, where the server answers all but it', async () => {
    await Promise.all([waitWhileAway(), letGoWhereAllElseIsTaken()]);
  });
});
