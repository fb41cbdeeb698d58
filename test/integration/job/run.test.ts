// `reeve job run`: jobs from their claim to their end.
import { describe, expect, it } from 'vitest';
import { makeJobRuns } from '../../support/job-runs.ts';
import { readLines } from '../../support/ploy/jobs.ts';

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
