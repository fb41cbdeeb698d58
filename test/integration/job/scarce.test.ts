// What a machine may run out of while a job runs: it ends all the same, and the server has its log.
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type JobRuns, makeJobRuns } from '../../support/job-runs.ts';
import { askDocker } from '../../support/node.ts';
import { readLines } from '../../support/ploy/jobs.ts';
import type { PloyJob } from '../../support/ploy/model.ts';
import { startProcess } from '../../support/programs.ts';

const idOf = (job: PloyJob): string => job.payload.job_id;
const main = join(import.meta.dirname, '../../../src/commands/main.ts');

const losses: readonly [string, (directory: string) => void][] = [
  [
    'the disk is full',
    (directory) => {
      rmSync(join(directory, 'stdout.log'));
      symlinkSync('/dev/full', join(directory, 'stdout.log'));
    },
  ],
  [
    'something else lies there',
    (directory) => {
      rmSync(join(directory, 'stdout.log'));
      mkdirSync(join(directory, 'stdout.log'));
    },
  ],
  ['the directory is gone', (directory) => rmSync(directory, { recursive: true })],
];

/** Killed while its container runs, which then ends by itself. */
async function leaveBehind(runs: JobRuns, job: PloyJob): Promise<string> {
  const program = runs.start(['job', 'run', idOf(job)]);
  await runs.ploy.waitUntil('its first line', () => job.chunks.size > 0);
  program.child.kill('SIGKILL');
  await program.ended;
  return join(runs.root, 'cache/jobs/runs', job.payload.id, 'artifacts', idOf(job));
}

describe('P62: the log of a job is with the server, and the job ends, where its file cannot be written', () => {
  it.each(losses)('as %s', async (_, lose) => {
    const runs = await makeJobRuns();
    const job = runs.claim({
      command:
        'echo begun; while [ ! -e /tmp/go ]; do sleep 0.1; done; i=0; while [ $i -lt 9000 ]; do echo "line $i, and more of it, so that it is not kept in memory"; i=$((i+1)); done',
    });
    lose(await leaveBehind(runs, job));
    const [container = ''] = await runs.containers(job);
    await askDocker(runs.socket, ['exec', container, 'touch', '/tmp/go']);
    const end = await runs.reeve('job', 'run', idOf(job));
    expect(end.status, end.stderr).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
    expect(readLines(job, 'stdout')).toHaveLength(9001);
    const told = job.events.filter(({ message }) => message.includes('is not kept whole here'));
    expect([told.length, runs.isClosed(job)]).toEqual([1, true]);
  });
});

describe('P59: a job whose workspace is gone when its container has ended', () => {
  it('is an error that says so, with its log, and not tried again and again', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'echo begun; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo over' });
    await leaveBehind(runs, job);
    const [container = ''] = await runs.containers(job);
    await askDocker(runs.socket, ['exec', container, 'touch', '/tmp/go']);
    await askDocker(runs.socket, ['wait', container]);
    rmSync(join(runs.root, 'cache/jobs/runs'), { recursive: true });
    const end = await runs.reeve('job', 'run', idOf(job));
    expect(end.status, end.stderr).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
    expect(job.completions[0]?.stats?.error).toMatch(/workspace/);
    expect([readLines(job, 'stdout'), runs.isClosed(job)]).toEqual([['begun', 'over'], true]);
  });
});

describe('P60: a job runs where the kernel has no more watches to give', () => {
  it('and is cancelled all the same', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'echo begun; sleep 60' });
    const program = startWithoutWatches(runs, ['job', 'run', idOf(job)]);
    await Promise.race([runs.ploy.waitUntil('its first line', () => job.chunks.size > 0), program.ended]);
    expect((await runs.reeve('job', 'cancel', idOf(job), '--yes')).status).toBe(0);
    expect((await program.ended).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Cancelled' }]);
  });

  it('and claims wait for a slot there', async () => {
    const runs = await makeJobRuns();
    runs.claim();
    const end = await startWithoutWatches(runs, ['claim', '--window', '1']).ended;
    expect([end.status, end.stderr]).toEqual([0, expect.not.stringContaining('EMFILE')]);
  });
});

/** In a user namespace of its own, in which there are none. */
function startWithoutWatches(runs: JobRuns, words: readonly string[]): ReturnType<typeof startProcess> {
  const script = 'echo 0 >/proc/sys/user/max_inotify_instances && exec "$@"';
  const argv = ['-Ur', 'sh', '-c', script, 'sh', process.execPath, main, ...words];
  return startProcess('unshare', argv, {
    ...runs.env,
    REEVE_CONFIG: join(runs.root, 'etc/reeve.yaml'),
    REEVE_STATE: runs.stateDir,
    REEVE_RUN: join(runs.root, 'run'),
    REEVE_CACHE: join(runs.root, 'cache'),
  });
}
