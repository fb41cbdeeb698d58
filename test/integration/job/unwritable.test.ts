// A disk that keeps no records while a job runs: the run fails, and nothing is lost or done twice by it.
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { engineSocket } from '../../support/engine.ts';
import { startEngineProxy } from '../../support/engine-proxy.ts';
import { fillDisk, mountSmall } from '../../support/full-disk.ts';
import { type JobRuns, makeJobRuns } from '../../support/job-runs.ts';
import { inspectAll } from '../../support/node.ts';
import type { PloyJob } from '../../support/ploy/model.ts';

const idOf = (job: PloyJob): string => job.payload.job_id;

async function makeRunsOnSmallDisk(): Promise<JobRuns> {
  const runs = await makeJobRuns();
  mountSmall(runs.stateDir, 'size=8m');
  return runs;
}

describe('a job whose progress cannot be written', () => {
  it('P60: is cancelled all the same, and the next run tells it', async () => {
    const runs = await makeRunsOnSmallDisk();
    const job = runs.claim({ command: 'trap "" TERM; echo begun; while :; do sleep 1; done' });
    const program = runs.start(['job', 'run', idOf(job)]);
    await runs.ploy.waitUntil('its first line', () => job.chunks.size > 0);
    const [container = ''] = await runs.containers(job);
    const makeRoom = fillDisk(runs.stateDir);
    runs.ploy.cancelJob(idOf(job));
    const end = await program.ended;
    expect([end.status, end.stderr]).toEqual([1, expect.not.stringContaining('internal error')]);
    expect((await inspectAll(runs.socket, [container]))[0]?.state).toBe('exited');
    expect(runs.record(job, 'completion.json')).toEqual({});
    makeRoom();
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect(runs.record(job, 'completion.json')['body']).toMatchObject({ status: 'Cancelled' });
    expect([runs.isClosed(job), await runs.containers(job)]).toEqual([true, []]);
  });

  it('P59: before it has a container is left to the next run, and is no error', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'echo x >> /share/starts' });
    runs.ploy.faults.add({ route: 'snapshot', kind: 'slow', ms: 2000 });
    const program = runs.start(['job', 'run', idOf(job)]);
    await runs.ploy.waitUntil('the image', () => job.images.length > 0);
    const path = join(runs.stateDir, 'jobs', idOf(job), 'progress.json');
    mkdirSync(join(path, 'in-the-way'), { recursive: true });
    expect((await program.ended).stderr).toMatch(/cannot write .*progress\.json/);
    expect([job.completions, runs.record(job, 'completion.json'), await runs.containers(job)]).toEqual([
      [],
      {},
      [],
    ]);
    rmSync(path, { recursive: true });
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Success' }]);
  });
});

describe('a job whose cancellation cannot be read', () => {
  it('runs, with one warning', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'sleep 7' });
    mkdirSync(join(runs.stateDir, 'jobs', idOf(job), 'cancel.json'));
    const end = await runs.reeve('job', 'run', idOf(job));
    expect([end.status, end.stderr.match(/cancel\.json/g)?.length]).toEqual([0, 1]);
    expect([job.status, runs.isClosed(job)]).toEqual(['Success', true]);
  });
});

describe('R59: an engine that is away for a moment', () => {
  it('before the container is made ends no job', async () => {
    const proxy = await startEngineProxy(engineSocket());
    const refused: string[] = [];
    proxy.beforeRequest = (line) => {
      const about = /^(GET \/images|POST \/containers\/create)/.exec(line)?.[0];
      if (about === undefined || refused.filter((one) => one === about).length >= 4) return;
      refused.push(about);
      throw new Error('it is restarted');
    };
    const runs = await makeJobRuns(proxy.socket);
    const job = runs.claim({ command: 'echo begun' });
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect(refused).toHaveLength(8);
    expect(job.completions).toMatchObject([{ status: 'Success' }]);
    expect([runs.isClosed(job), await runs.containers(job)]).toEqual([true, []]);
  });
});
