// A job in a real engine, seen, followed and cancelled while it runs.
import { expect, it } from 'vitest';
import { makeJobRuns } from '../../../support/job-runs.ts';

it('P58: a running job is listed, followed and cancelled by its id, and the follower ends with it', async () => {
  const runs = await makeJobRuns();
  const job = runs.claim({ command: 'echo begun; echo trouble >&2; while :; do sleep 1; done' });
  const id = job.payload.job_id;
  const program = runs.start(['job', 'run', id]);
  await runs.ploy.waitUntil('its first line', () => job.chunks.size > 0);
  const following = runs.start(['job', 'logs', '--follow', id]);
  await following.waitFor('begun\n');
  await following.waitFor('trouble\n');
  const [container = ''] = await runs.containers(job);
  const listed = await runs.reeve('job', 'list', '--json');
  expect(JSON.parse(listed.stdout).jobs).toMatchObject([
    {
      id,
      run: job.payload.id,
      open: true,
      held: true,
      phase: 'running',
      containerId: container,
      status: null,
    },
  ]);
  const askedAtMs = Date.now();
  const cancelled = await runs.reeve('job', 'cancel', id, '--yes', '--reason', 'enough');
  expect(cancelled.stdout).toContain('noticed within 4 s, and its container is gone within 10 s');
  expect((await program.ended).status).toBe(0);
  expect(Date.now() - askedAtMs).toBeLessThan(10_000);
  expect(await following.ended).toMatchObject({ status: 0, stdout: 'begun\n', stderr: 'trouble\n' });
  expect(await runs.containers(job)).toEqual([]);
  const shown = await runs.reeve('job', 'show', id);
  expect(shown.stdout).toContain(`of run ${job.payload.id}: Cancelled\n`);
  expect(shown.stdout).toMatch(/\ncancelled .* by the operator: enough\n/);
  expect(shown.stdout).toMatch(/\nthe server took it .* ago, sent 1 time\n/);
});
