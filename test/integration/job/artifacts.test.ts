// The artifacts of jobs that did not end well, which is when somebody looks for them.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeJobRuns } from '../../support/job-runs.ts';
import type { PloyJob } from '../../support/ploy/model.ts';

const idOf = (job: PloyJob): string => job.payload.job_id;

describe('P52: artifacts', () => {
  it('of a job that is cancelled while it runs go to the server, and no diff', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({
      command: 'echo kept > /out/kept; echo new > /workspace/new; echo begun; sleep 600',
    });
    const program = runs.start(['job', 'run', idOf(job)]);
    await runs.ploy.waitUntil('its first line', () => job.chunks.size > 0);
    runs.ploy.cancelJob(idOf(job));
    expect((await program.ended).status).toBe(0);
    expect(job.artifacts.map(({ name }) => name)).toEqual(['repo-artifacts']);
    expect([job.diffs, job.status, runs.isClosed(job)]).toEqual([[], 'Cancelled', true]);
    expect(runs.ploy.state.violations).toEqual([]);
  });

  it.each([
    ['no container could be made of', { image: '127.0.0.1:9/none:1' }],
    ['could not be started', { command: ['/no/such/program'] }],
  ])('of a run whose job %s go to the server as well', async (_, options) => {
    const runs = await makeJobRuns();
    const job = runs.claim(options);
    const shared = join(runs.root, 'cache/jobs/runs', job.payload.id, 'artifacts/shared');
    mkdirSync(shared, { recursive: true });
    writeFileSync(join(shared, 'of-the-job-before'), 'kept');
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
    expect(job.artifacts.map(({ name }) => name)).toEqual(['repo-artifacts']);
    expect(job.events.map(({ level }) => level)).toEqual(['error']);
  });
});
