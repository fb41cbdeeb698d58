// A job whose record of its claim is damaged, met first by `job run`: where its container is there, it is taken up by its labels
// as `claim` would take it up, and not left running with nobody to watch it.
import { describe, expect, it } from 'vitest';
import { damageRecords, killRunning, makeJobRuns } from '../../support/job-runs.ts';
import { askDocker, inspectAll } from '../../support/node.ts';
import { readLines } from '../../support/ploy/jobs.ts';
import type { PloyJob } from '../../support/ploy/model.ts';

const idOf = (job: PloyJob): string => job.payload.job_id;
const command = 'echo x >> /out/starts; echo begun; while [ ! -e /out/go ]; do sleep 0.1; done; echo late';

describe('R32 P34 P35 P36 P37: a claim that is damaged while the container runs', () => {
  it.each([
    ['empty', ''],
    ['cut', '{"version":1,"sour'],
    ['of NULs', '\0'.repeat(64)],
    ['of a newer version', '{"version":99}'],
  ])('%s: job run follows the container to its end, with its log and its exit code', async (_, text) => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: `${command}; exit 7` });
    const container = await killRunning(runs, job);
    damageRecords(runs, job, ['claim.json'], text);
    const program = runs.start(['job', 'run', idOf(job)]);
    await program.waitFor('claim.json');
    expect((await inspectAll(runs.socket, [container]))[0]?.state).toBe('running');
    await askDocker(runs.socket, ['exec', container, 'touch', '/out/go']);
    expect((await program.ended).status).toBe(0);
    expect(job.completions).toMatchObject([
      {
        status: 'Error',
        exit_code: 7,
        stats: { metadata: { source: 'startup_reconcile', container_id: container } },
      },
    ]);
    expect(readLines(job)).toEqual(['begun', 'late']);
    expect([runs.isClosed(job), await runs.containers(job)]).toEqual([true, []]);
    expect(runs.record(job, 'claim.json')).toMatchObject({ runId: job.payload.id, source: 'adopted' });
    expect(runs.ploy.state.violations).toEqual([]);
  });

  it('and the progress with it: the container is followed all the same, and runs once', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command });
    const container = await killRunning(runs, job);
    damageRecords(runs, job, ['claim.json', 'progress.json'], '');
    await askDocker(runs.socket, ['exec', container, 'touch', '/out/go']);
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
    expect(runs.artifact(job, 'out/starts')).toBe('x\n');
    expect([runs.isClosed(job), await runs.containers(job)]).toEqual([true, []]);
  });

  it('but without an engine that answers nothing is said to have failed, and the job stays open', async () => {
    const runs = await makeJobRuns('/nowhere/docker.sock');
    const job = runs.claim({ command });
    damageRecords(runs, job, ['claim.json'], '');
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(69);
    expect([job.completions, runs.isClosed(job)]).toEqual([[], false]);
  });

  it('R30: after its end was decided is told that end, and needs no engine for it', async () => {
    const runs = await makeJobRuns('/nowhere/docker.sock');
    const job = runs.claim({ command });
    damageRecords(runs, job, ['claim.json'], '');
    const decidedAt = new Date().toISOString();
    const body = { status: 'Success', exit_code: 0 };
    runs.write(`state/jobs/${idOf(job)}/completion.json`, { version: 1, body, decidedAt, attempts: 4 });
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect(job.completions).toEqual([body]);
    expect(runs.read(`state/jobs-ended/${idOf(job)}/completion.json`)).toContain('"acknowledged"');
  });
});
