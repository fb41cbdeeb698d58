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

describe('P30, R30: results that the server has trouble to take', () => {
  it.each([
    ['the diff', 'diff', changing, 'Success'],
    ['the diff of a job that failed', 'diff', `${changing}; exit 1`, 'Fail'],
    ['the artifacts', 'artifact', `${changing}; exit 1`, 'Fail'],
    ['the diff, as the token is not good now', 'diff', changing, 'Success', 401],
  ] as const)('wait for the next run: %s', async (_, route, command, status, answer: number = 503) => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command });
    const heal = runs.ploy.faults.add({ route, kind: 'answer', status: answer });
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(69);
    expect([job.completions, job.events, runs.isClosed(job)]).toEqual([[], [], false]);
    heal();
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect(job.completions.map((completion) => completion.status)).toEqual([status]);
    expect([job.diffs.length, job.artifacts.length <= 1]).toEqual([1, true]);
    expect([runs.isClosed(job), runs.ploy.state.violations]).toEqual([true, []]);
  });

  it('wait while it is away altogether, and are let go after ten minutes where it answers all but them', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: changing });
    const long = { since: new Date(Date.now() - 601_000).toISOString() };
    runs.ploy.faults.add({ route: 'diff', kind: 'answer', status: 500 });
    const heal = runs.ploy.faults.add({ route: 'status', kind: 'answer', status: 503 });
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(69);
    rewriteProgress(runs, job, () => long);
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(69);
    expect([job.completions, runs.isClosed(job)]).toEqual([[], false]);
    heal();
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
    expect(job.completions[0]?.stats?.error).toContain('answered 500');
    expect(runs.isClosed(job)).toBe(true);
  });
});
