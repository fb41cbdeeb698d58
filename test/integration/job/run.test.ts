// `reeve job run`: jobs from their claim to their end.
import { describe, expect, it } from 'vitest';
import { type JobRuns, makeJobRuns } from '../../support/job-runs.ts';
import { readLines } from '../../support/ploy/jobs.ts';
import type { PloyJob } from '../../support/ploy/model.ts';
import type { Program } from '../../support/programs.ts';

describe('a claimed job', () => {
  it.each([
    [0, 'Success'],
    [1, 'Fail'],
    [7, 'Error'],
    [137, 'Error'],
  ])(
    'P50, P51, P57: that exits %i is completed as %s, closed, and its container removed',
    async (code, status) => {
      const runs = await makeJobRuns();
      const job = runs.claim({ command: `echo out; echo err >&2; exit ${code}` });
      const end = await runs.reeve('job', 'run', job.payload.job_id, '--json');
      expect([end.status, end.stderr]).toEqual([0, '']);
      expect(job.completions).toMatchObject([{ status, exit_code: code, stats: { exit_code: code } }]);
      expect([readLines(job, 'stdout'), readLines(job, 'stderr')]).toEqual([['out'], ['err']]);
      expect(runs.isClosed(job)).toBe(true);
      expect(await runs.containers(job)).toEqual([]);
      expect(runs.ploy.state.violations).toEqual([]);
      expect([runs.artifact(job, 'stdout.log'), runs.artifact(job, 'stderr.log')]).toEqual([
        'out\n',
        'err\n',
      ]);
      expect(runs.artifact(job, 'container.inspect.json') === '').toBe(code === 0);
    },
  );
});

describe('a job in a unit, which systemd starts again right after it has ended', () => {
  const asUnit = { INVOCATION_ID: '0123456789abcdef0123456789abcdef' };
  const startAway = async (status: number): Promise<{ runs: JobRuns; program: Program; job: PloyJob }> => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'true' });
    runs.ploy.faults.add({ route: 'complete', kind: 'answer', status });
    return { runs, job, program: runs.start(['job', 'run', job.payload.job_id], asUnit) };
  };

  it('R30: stays for ten seconds where the server is out of reach, so that it does not spin', async () => {
    const startedAtMs = performance.now();
    const { runs, job, program } = await startAway(503);
    expect((await program.ended).status).toBe(69);
    expect(performance.now() - startedAtMs).toBeGreaterThan(10_000);
    expect([runs.isClosed(job), runs.ploy.requestsTo('complete').length]).toEqual([false, 4]);
  });

  it('R30: ends at once where it is told to while it stays', async () => {
    const { runs, program } = await startAway(503);
    await runs.ploy.waitUntil('the fourth attempt', () => runs.ploy.requestsTo('complete').length === 4);
    const toldAtMs = performance.now();
    program.child.kill('SIGTERM');
    expect([69, 143]).toContain((await program.ended).status);
    expect(performance.now() - toldAtMs).toBeLessThan(5_000);
  });

  it('ends at once when it is done', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'true' });
    const startedAtMs = performance.now();
    const end = await runs.start(['job', 'run', job.payload.job_id], asUnit).ended;
    expect([end.status, runs.isClosed(job)]).toEqual([0, true]);
    expect(performance.now() - startedAtMs).toBeLessThan(10_000);
  });
});
