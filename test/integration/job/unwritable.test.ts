// A disk that keeps no records while a job runs: the run fails, and nothing is lost or done twice by it.
import { describe, expect, it } from 'vitest';
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
});
