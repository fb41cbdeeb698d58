// Answers that the server never gives itself, by something between it and the node: they pass, and cost the job nothing.
import { expect, it } from 'vitest';
import { makeJobRuns } from '../../support/job-runs.ts';
import { readLines } from '../../support/ploy/jobs.ts';

it.each([307, 408, 429])(
  'R28: %d is waited out, and neither log nor diff nor end is lost',
  async (status) => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'echo said; echo done > changed' });
    const { job_id: jobId } = job.payload;
    for (const route of ['snapshot', 'logs', 'diff', 'artifact'] as const) {
      runs.ploy.faults.add({ route, kind: 'answer', status, times: 2 });
    }
    runs.ploy.faults.add({ route: 'complete', kind: 'answer', status, times: 1 });
    expect((await runs.reeve('job', 'run', jobId)).status).toBe(69);
    expect((await runs.reeve('job', 'run', jobId)).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
    expect([readLines(job), job.diffs.length, job.artifacts.length]).toEqual([['said'], 1, 1]);
    expect(runs.isClosed(job)).toBe(true);
  },
);
