// An engine that answers some questions oddly, all others truly: the job ends as its container has.
import { describe, expect, it } from 'vitest';
import { engineSocket } from '../../support/engine.ts';
import { startEngineProxy } from '../../support/engine-proxy.ts';
import { makeJobRuns } from '../../support/job-runs.ts';
import { askDocker } from '../../support/node.ts';
import { readLines } from '../../support/ploy/jobs.ts';
import type { PloyJob } from '../../support/ploy/model.ts';

const idOf = (job: PloyJob): string => job.payload.job_id;

describe('P35, P51: a job whose engine', () => {
  it.each([
    ['fails each wait', { status: 500, body: { message: 'wait is broken' } }],
    ['answers each wait with a list', { status: 200, body: [] }],
    ['answers each wait with a text', { status: 200, body: { StatusCode: 'none' } }],
    ['refuses each wait', { status: 400, body: { message: 'no such condition' } }],
  ])('%s ends as its container does', async (_, answer) => {
    const proxy = await startEngineProxy(engineSocket());
    proxy.answerInstead = (line) => (line.endsWith('/wait') ? answer : undefined);
    const runs = await makeJobRuns(proxy.socket);
    const job = runs.claim({ command: 'echo one; sleep 1; echo two; exit 7' });
    const end = await runs.reeve('job', 'run', idOf(job));
    expect(end.status, end.stderr).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: 7 }]);
    expect(readLines(job)).toEqual(['one', 'two']);
    expect([runs.isClosed(job), await runs.containers(job)]).toEqual([true, []]);
  });

  it.each([
    ['a list', { status: 200, body: [] }],
    ['texts for numbers', { status: 200, body: { cpu_stats: { cpu_usage: { total_usage: 'much' } } } }],
    ['a failure', { status: 500, body: { message: 'no stats' } }],
  ])('answers %s when it is asked what is used, ends with nothing told of that', async (_, answer) => {
    const proxy = await startEngineProxy(engineSocket());
    proxy.answerInstead = (line) => (line.endsWith('/stats') ? answer : undefined);
    const runs = await makeJobRuns(proxy.socket);
    const job = runs.claim({ command: 'sleep 1' });
    const end = await runs.reeve('job', 'run', idOf(job));
    expect([end.status, end.stderr]).toEqual([0, '']);
    expect(job.completions).toMatchObject([
      { status: 'Success', stats: { job_resources: { cpu_consumed_ns: 0, mem_consumed_bytes: 0 } } },
    ]);
    expect(runs.ploy.state.violations).toEqual([]);
  });

  it('P36, P37: keeps no log of a container that the original has left, is completed and told why', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim();
    const labels = [`com.ploy.run_id=${job.payload.id}`, `com.ploy.job_id=${idOf(job)}`];
    const words = ['--log-driver', 'none', ...labels.flatMap((label) => ['--label', label])];
    const shell = ['reeve-demo/box:v1', 'sh', '-c', 'echo unheard; sleep 1; exit 3'];
    const id = await askDocker(runs.socket, ['run', '-d', ...words, ...shell]);
    runs.adopt(job, id.trim());
    const end = await runs.reeve('job', 'run', idOf(job));
    expect(end.status, end.stderr).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: 3 }]);
    expect(job.events.map(({ level, message }) => [level, message])).toEqual([
      ['warn', expect.stringContaining('does not support reading')],
    ]);
    expect(runs.isClosed(job)).toBe(true);
  });

  it('P51: has failed to give the log for long is not waited for by the end of the job', {
    timeout: 200_000,
  }, async () => {
    const proxy = await startEngineProxy(engineSocket());
    const runs = await makeJobRuns(proxy.socket);
    const job = runs.claim({ command: 'echo begun; while [ ! -e /out/go ]; do sleep 0.1; done; exit 1' });
    const program = runs.start(['job', 'run', idOf(job)]);
    await runs.ploy.waitUntil('its first line', () => job.chunks.size > 0);
    program.child.kill('SIGKILL');
    await program.ended;
    const [container = ''] = await runs.containers(job);
    await askDocker(engineSocket(), ['exec', container, 'touch', '/out/go']);
    await askDocker(engineSocket(), ['wait', container]);
    const end = { exitCode: 1, oomKilled: false, error: '' };
    const since = new Date(Date.now() - 3_600_000).toISOString();
    const progress = { ...runs.record(job, 'progress.json'), phase: 'ended', end, since };
    runs.write(`state/jobs/${idOf(job)}/progress.json`, progress);
    proxy.answerInstead = (line) =>
      line.endsWith('/logs') ? { status: 500, body: { message: 'the log is broken' } } : undefined;
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Fail', exit_code: 1 }]);
    expect(job.events.map(({ message }) => message)).toEqual([expect.stringContaining('the log is broken')]);
    expect([runs.isClosed(job), readLines(job)]).toEqual([true, ['begun']]);
  });
});
