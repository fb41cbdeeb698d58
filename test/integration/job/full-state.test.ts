// A state directory without room while a job runs: nothing can be recorded, and the job is not lost for it.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { makeJobRuns } from '../../support/job-runs.ts';
import { askDocker } from '../../support/node.ts';

it('P60: a job whose state directory is full is cancelled all the same, and told as soon as there is room', async () => {
  const runs = await makeJobRuns();
  const state = join(runs.root, 'state');
  mkdirSync(state, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', state]);
  onTestFinished(() => void execFileSync('umount', ['-l', state]));
  const job = runs.claim({ command: 'echo begun; sleep 60' });
  const { job_id: jobId } = job.payload;
  const program = runs.start(['job', 'run', jobId]);
  await runs.ploy.waitUntil('its first line', () => job.chunks.size > 0);
  spawnSync('dd', ['if=/dev/zero', `of=${join(state, 'filler')}`, 'bs=4k']);
  runs.ploy.cancelJob(jobId);
  const end = await program.ended;
  expect(end.status, end.stderr).toBe(1);
  expect(end.stderr).toMatch(/progress\.json": ENOSPC/);
  expect(await askDocker(runs.socket, ['ps', '-q', '--filter', `label=com.ploy.job_id=${jobId}`])).toBe('');
  rmSync(join(state, 'filler'));
  expect((await runs.reeve('job', 'run', jobId)).status).toBe(0);
  expect([runs.isClosed(job), job.status, await runs.containers(job)]).toEqual([true, 'Cancelled', []]);
});
