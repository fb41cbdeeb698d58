// What a job has left, where the server is away while it is told.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type JobRuns, makeJobRuns } from '../../support/job-runs.ts';
import type { PloyJob } from '../../support/ploy/model.ts';

const idOf = (job: PloyJob): string => job.payload.job_id;
const changing = 'echo new > /workspace/new; echo kept > /out/kept; echo done';

/** As a run that was killed just then would have left it. */
function rewriteProgress(runs: JobRuns, job: PloyJob, change: (progress: Progress) => object): void {
  const path = `state/jobs/${idOf(job)}/progress.json`;
  const progress = JSON.parse(readFileSync(join(runs.root, path), 'utf8')) as Progress;
  runs.write(path, { ...progress, ...change(progress) });
}

type Progress = { steps: object[]; since: string };

describe('P52: the diff of a job', () => {
  it('is sent where it was only timed, and once', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: changing });
    const heal = runs.ploy.faults.add({ route: 'diff', kind: 'silence' });
    const program = runs.start(['job', 'run', idOf(job)]);
    await runs.ploy.waitUntil('the diff', () => runs.ploy.requestsTo('diff').length > 0);
    program.child.kill('SIGKILL');
    await program.ended;
    heal();
    rewriteProgress(runs, job, ({ steps }) => ({
      steps: [...steps, { name: 'diff', at: new Date().toISOString(), ms: 1 }],
    }));
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect(job.diffs).toMatchObject([{ patch: expect.stringContaining('+new') }]);
    expect([job.status, runs.isClosed(job)]).toEqual(['Success', true]);
  });
});
