// How jobs end that do not simply run: cancelled, refused, broken, told to stop, unheard.
import { describe, expect, it } from 'vitest';
import { makeJobRuns, startRunning } from '../../support/job-runs.ts';
import { askDocker, inspectAll } from '../../support/node.ts';
import type { PloyJob } from '../../support/ploy/model.ts';

const idOf = (job: PloyJob): string => job.payload.job_id;

describe('a job that is cancelled', () => {
  it('P58: before its container starts never starts it', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'echo begun' });
    const cancel = { version: 1, at: new Date().toISOString(), reason: 'enough', by: 'operator' };
    runs.write(`state/jobs/${idOf(job)}/cancel.json`, cancel);
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect([job.completions.map(({ status }) => status), job.chunks.size]).toEqual([['Cancelled'], 0]);
    expect(await runs.containers(job)).toEqual([]);
  });
});

describe('a job that cannot be run', () => {
  it.each([
    ['P49: a spec that is wrong', { spec: { steps: [] } }, /spec/],
    ['P59: an image that is nowhere', { image: '127.0.0.1:9/none:1' }, /127\.0\.0\.1:9\/none:1/],
    ['P59: a program that is not in the image', { command: ['/no/such/program'] }, /no\/such\/program/],
  ])('%s is an error with exit code -1, and told', async (_, options, words) => {
    const runs = await makeJobRuns();
    const job = runs.claim(options);
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
    expect(job.completions[0]?.stats?.error).toMatch(words);
    expect(job.events.map(({ level }) => level)).toEqual(['error']);
    expect([runs.isClosed(job), await runs.containers(job)]).toEqual([true, []]);
  });

  it('P59: without an engine is an error, never a success', async () => {
    const runs = await makeJobRuns('/nowhere/docker.sock');
    const job = runs.claim();
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
  });
});

describe('a job whose container goes its own way', () => {
  it('R59: is an error when somebody has removed it, and never runs again', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'echo begun; sleep 600' });
    const { program, container } = await startRunning(runs, job);
    await askDocker(runs.socket, ['rm', '-f', container]);
    expect((await program.ended).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Error' }]);
    expect([runs.isClosed(job), await runs.containers(job)]).toEqual([true, []]);
  });

  it('is an error that says so when it ran out of memory', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({
      command: 'echo begun; while [ ! -e /out/go ]; do sleep 0.1; done; tail -c 200m /dev/zero >/dev/null',
    });
    const { program, container } = await startRunning(runs, job);
    await askDocker(runs.socket, ['update', '--memory', '16m', '--memory-swap', '16m', container]);
    await askDocker(runs.socket, ['exec', container, 'touch', '/out/go']);
    expect((await program.ended).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: 137 }]);
  });
});

describe('job run', () => {
  it('P34, P35, P36, P37: told to stop leaves the container to the next one, which takes it up', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'echo one; while [ ! -e /out/go ]; do sleep 0.1; done; echo two' });
    const { program, container } = await startRunning(runs, job);
    program.child.kill('SIGTERM');
    expect((await program.ended).status).toBe(143);
    expect((await inspectAll(runs.socket, [container]))[0]?.state).toBe('running');
    const asked = runs.ploy.requestsTo('status').length;
    const second = runs.start(['job', 'run', idOf(job)]);
    // It asks once it has found the container.
    await runs.ploy.waitUntil('the next one', () => runs.ploy.requestsTo('status').length > asked);
    await askDocker(runs.socket, ['exec', container, 'touch', '/out/go']);
    expect(await second.ended).toMatchObject({ status: 0, stderr: '' });
    expect([...job.chunks.values()].flatMap(({ frames }) => frames?.map(({ line }) => line))).toEqual([
      'one',
      'two',
    ]);
    expect(job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
    expect(runs.ploy.state.violations).toEqual([]);
  });

  it('is busy while another one has the job', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'echo begun; sleep 600' });
    const { program } = await startRunning(runs, job);
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(75);
    program.child.kill('SIGKILL');
    await program.ended;
  });

  it('P61, R30: keeps what could not be told, exits 69, and tells it in the end', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'echo begun' });
    const heal = runs.ploy.faults.add({ route: 'complete', kind: 'answer', status: 503 });
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(69);
    expect(runs.ploy.requestsTo('complete')).toHaveLength(4);
    expect([runs.isClosed(job), runs.record(job, 'completion.json')['attempts']]).toEqual([false, 4]);
    heal();
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
    expect([runs.isClosed(job), await runs.containers(job)]).toEqual([true, []]);
  });

  it('P61, R26: gives up a completion that is refused, with one message and one event', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'echo begun' });
    const refusal = { kind: 'answer', status: 403, text: 'job not assigned to this node' } as const;
    runs.ploy.faults.add({ route: 'complete', ...refusal });
    runs.ploy.faults.add({ route: 'status', ...refusal });
    const end = await runs.reeve('job', 'run', idOf(job));
    expect([end.status, end.stderr.match(/not assigned to this node/g)?.length]).toEqual([0, 1]);
    expect([job.events.length, runs.ploy.requestsTo('complete').length]).toEqual([1, 1]);
    expect(runs.record(job, 'completion.json')['settled']).toMatchObject({ how: 'refused' });
  });

  it('P41: a job that the server has ended before is closed with a warning', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'echo begun; while [ ! -e /out/go ]; do sleep 0.1; done' });
    const { program, container } = await startRunning(runs, job);
    runs.ploy.setStatus(idOf(job), 'Fail');
    await askDocker(runs.socket, ['exec', container, 'touch', '/out/go']);
    expect((await program.ended).status).toBe(0);
    expect(runs.record(job, 'completion.json')['settled']).toMatchObject({ how: 'already-terminal' });
    expect(job.events).toHaveLength(1);
  });

  it('P34, P36, P63: takes up a container of the original after the chunks that it has sent', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'x' });
    const labels = [`com.ploy.run_id=${job.payload.id}`, `com.ploy.job_id=${idOf(job)}`].flatMap((one) => [
      '--label',
      one,
    ]);
    const id = await askDocker(runs.socket, [
      'run',
      '-d',
      ...labels,
      'reeve-demo/worker:v1',
      '/bin/sh',
      '-c',
      'sleep 3; echo late; sleep 1; exit 3',
    ]);
    await askDocker(runs.socket, ['wait', id.trim()]);
    const format = '{{.State.StartedAt}} {{.State.FinishedAt}}';
    const times = await askDocker(runs.socket, ['inspect', '--format', format, id.trim()]);
    const [startedMs = 0, finishedMs = 0] = times.trim().split(' ').map(Date.parse);
    runs.adopt(job, id.trim());
    job.chunks.set(0, { chunkNo: 0, atMs: 0, gzipBytes: 1, sha256: 'theirs', bytes: 1, frames: [] });
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect(job.chunks.get(1)?.frames).toEqual([{ stream: 'stdout', line: 'late' }]);
    const metadata = { source: 'startup_reconcile', container_id: id.trim() };
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: 3, stats: { metadata } }]);
    // As long as it ran, however long it has been known here.
    const { stats } = job.completions[0] ?? {};
    expect(stats?.duration_ms).toBe(finishedMs - startedMs);
    expect(stats?.timings?.total_duration_ms).toBe(stats?.duration_ms);
  });
});
