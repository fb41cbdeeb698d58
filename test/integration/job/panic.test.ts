// An exception that nobody has foreseen, in a real `job run`: a directory lies where the node's own git has a file.
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { type JobRuns, makeJobRuns } from '../../support/job-runs.ts';
import { askDocker } from '../../support/node.ts';
import { readLines } from '../../support/ploy/jobs.ts';
import type { PloyJob } from '../../support/ploy/model.ts';

const idOf = (job: PloyJob): string => job.payload.job_id;
const command = 'echo x >> /out/starts; echo begun; while [ ! -e /out/go ]; do sleep 0.1; done; echo ended';

const scratchOf = (runs: JobRuns, job: PloyJob): string =>
  join(runs.root, 'cache/jobs/runs', job.payload.id, 'scratch', idOf(job));

function breakGit(runs: JobRuns, job: PloyJob): void {
  const head = join(scratchOf(runs, job), 'git/HEAD');
  rmSync(head, { force: true });
  mkdirSync(head, { recursive: true });
}

/** Runs the job to the moment before its container ends, breaks what the end needs, and lets it end. */
async function runBroken(runs: JobRuns, job: PloyJob) {
  const program = runs.start(['job', 'run', idOf(job)]);
  await runs.ploy.waitUntil('its first line', () => job.chunks.size > 0);
  breakGit(runs, job);
  const [container = ''] = await runs.containers(job);
  await askDocker(runs.socket, ['exec', container, 'touch', '/out/go']);
  return await program.ended;
}

describe('P51, P59: an exception of our own within job run', () => {
  it('after the container has ended is the end of the job, told once, with its log', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command });
    const first = await runBroken(runs, job);
    expect([first.status, first.stderr]).toEqual([70, expect.stringContaining('EISDIR')]);
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
    expect(job.completions[0]?.stats?.error).toMatch(/^the node failed: .*EISDIR/);
    expect(job.completions[0]).not.toHaveProperty('repo_sha_out');
    expect(job.events.map(({ level, message }) => [level, message])).toEqual([
      ['error', job.completions[0]?.stats?.error],
    ]);
    expect(readLines(job)).toEqual(['begun', 'ended']);
    expect(runs.isClosed(job)).toBe(false);
    const second = await runs.reeve('job', 'run', idOf(job));
    expect([second.status, second.stderr]).toEqual([0, '']);
    expect([runs.isClosed(job), await runs.containers(job)]).toEqual([true, []]);
    expect([job.completions.length, runs.ploy.requestsTo('complete').length]).toEqual([1, 1]);
    expect(runs.artifact(job, 'out/starts')).toBe('x\n');
    expect(runs.ploy.state.violations).toEqual([]);
  });

  it('while the server is away is told by the next run, once, and the job is not tried again', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command });
    const heal = runs.ploy.faults.add({ route: 'complete', kind: 'answer', status: 503 });
    expect((await runBroken(runs, job)).status).toBe(70);
    expect(job.completions).toEqual([]);
    rmSync(join(scratchOf(runs, job), 'git'), { recursive: true });
    heal();
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
    expect(job.completions[0]?.stats?.error).toMatch(/^the node failed: /);
    expect([runs.isClosed(job), await runs.containers(job)]).toEqual([true, []]);
    expect(runs.artifact(job, 'out/starts')).toBe('x\n');
  });

  it('before there is a container is an error of the job, and no container is made', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command });
    runs.ploy.faults.add({ route: 'snapshot', kind: 'slow', ms: 2000 });
    const program = runs.start(['job', 'run', idOf(job)]);
    await vi.waitFor(() => expect(existsSync(join(scratchOf(runs, job), 'staged'))).toBe(true), 30_000);
    breakGit(runs, job);
    expect((await program.ended).status).toBe(70);
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
    expect(await runs.containers(job)).toEqual([]);
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect([runs.isClosed(job), job.completions.length, job.chunks.size]).toEqual([true, 1, 0]);
  });
});
