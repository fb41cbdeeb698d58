// What jobs leave: diffs, hashes, artifacts, and how long their parts took. And an engine that goes away under them.
import { describe, expect, it, onTestFinished } from 'vitest';
import { buildImages, engineDirectory, haltEngine, startEngine, stopEngine } from '../../support/engine.ts';
import { makeJobRuns } from '../../support/job-runs.ts';
import type { PloyJob } from '../../support/ploy/model.ts';

const idOf = (job: PloyJob): string => job.payload.job_id;

describe('what a job has left', () => {
  it('P52, P53: goes to the server: the diff, the hash of the tree, the artifacts of the last mig', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'echo new > /workspace/new; echo kept > /out/kept; echo done' });
    const end = await runs.reeve('job', 'run', idOf(job), '--json');
    expect([end.status, end.stderr]).toEqual([0, '']);
    expect(job.diffs).toMatchObject([
      {
        patch: expect.stringContaining('+new'),
        summary: { job_type: 'mig', files_changed: 1, lines_added: 1, exit_code: 0 },
      },
    ]);
    expect(job.artifacts.map(({ name }) => name)).toEqual(['repo-artifacts']);
    const [completion] = job.completions;
    expect(completion?.repo_sha_out).toMatch(/^[0-9a-f]{40}$/);
    expect(completion?.repo_sha_out).not.toBe(job.payload.repo_sha_in);
    expect(completion?.stats?.timings).toMatchObject({
      hydration_duration_ms: expect.any(Number),
      total_duration_ms: expect.any(Number),
    });
    expect(completion?.stats?.job_resources).toMatchObject({ disk_consumed_bytes: expect.any(Number) });
    expect(runs.ploy.state.violations).toEqual([]);
  });

  it('P57: of one that did nothing is the tree it began with', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'true' });
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Success', repo_sha_out: job.payload.repo_sha_in }]);
    expect(job.diffs).toEqual([]);
  });

  it('costs little beyond the container', async () => {
    const runs = await makeJobRuns();
    const own: number[] = [];
    let parts = '';
    for (let round = 0; round < 6; round += 1) {
      const job = runs.claim({ command: 'true' });
      const startedAtMs = Date.now();
      const end = await runs.start(['job', 'run', idOf(job), '--json']).ended;
      const totalMs = Date.now() - startedAtMs;
      const { steps } = JSON.parse(end.stdout) as { steps: { name: string; ms: number }[] };
      const ms = (name: string): number => steps.find((step) => step.name === name)?.ms ?? 0;
      if (round > 0) own.push(totalMs - ms('create') - ms('start') - ms('wait'));
      parts = steps.map((step) => `${step.name} ${step.ms}`).join(', ');
    }
    own.sort((a, b) => a - b);
    console.log(`figure: a job of true costs ${own[2]} ms beyond create, start and wait (${parts})`);
    expect(own[2]).toBeLessThan(1000);
  });
});

describe('an engine that is restarted', () => {
  it('R59: under a job ends it as an error, with its log, once', { timeout: 300_000 }, async () => {
    const directory = engineDirectory('jobs');
    onTestFinished(() => stopEngine(directory));
    const socket = startEngine(directory);
    buildImages(socket);
    const runs = await makeJobRuns(socket);
    const job = runs.claim({ command: 'echo begun; exec sleep 600' });
    const program = runs.start(['job', 'run', idOf(job)]);
    await runs.ploy.waitUntil('its first line', () => job.chunks.size > 0);
    haltEngine(directory, 'kill');
    startEngine(directory);
    expect((await program.ended).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Error' }]);
    expect([...job.chunks.values()].flatMap(({ frames }) => frames?.map(({ line }) => line))).toEqual([
      'begun',
    ]);
    expect(runs.ploy.state.violations).toEqual([]);
  });
});
