// What is there already: a job that the server gives once more, and a container under the name that a job's is to have.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ClaimNode, makeClaimNode } from '../../support/claim-node.ts';
import { engineSocket } from '../../support/engine.ts';
import { type EngineProxy, startEngineProxy } from '../../support/engine-proxy.ts';
import { makeJobRuns } from '../../support/job-runs.ts';
import { askDocker } from '../../support/node.ts';
import type { PloyJob } from '../../support/ploy/model.ts';

const idOf = (job: PloyJob): string => job.payload.job_id;

function readStarts(node: ClaimNode, job: PloyJob): string {
  return readFileSync(
    join(node.root, 'work/runs', job.payload.id, 'artifacts', idOf(job), 'out/starts'),
    'utf8',
  );
}

const claimsOf = (job: PloyJob): number[] =>
  job.history.filter(({ status }) => status === 'Running').map(({ atMs }) => atMs);

describe('R26: a job that the server gives once more', () => {
  it('after its end was refused is not run again, and told again', async () => {
    const node = await makeClaimNode();
    const job = node.ploy.queueJob({ command: 'echo x >> /out/starts; exit 1' });
    const heal = node.ploy.faults.add({ route: 'complete', kind: 'answer', status: 422, text: 'not this' });
    expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
    expect([job.completions, node.endedJobs()]).toEqual([[], [idOf(job)]]);
    heal();
    node.ploy.setStatus(idOf(job), 'Queued');
    const end = await node.reeve('claim', '--window', '0');
    expect([end.status, end.stdout]).toEqual([0, 'no job was offered\n']);
    expect(end.stderr.match(/once more/g)).toHaveLength(1);
    // What the server refused while it believed the job to run was replaced then, so that it ends there too.
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
    expect(readStarts(node, job)).toBe('x\n');
    expect([node.openJobs(), await node.containers()]).toEqual([[], []]);
  });

  it('again and again, with its end refused each time, is waited for longer each time, and others are claimed', async () => {
    const node = await makeClaimNode();
    const job = node.ploy.queueJob({ command: 'echo x >> /out/starts' });
    node.ploy.faults.add({
      route: 'complete',
      kind: 'answer',
      status: 422,
      text: 'not this',
      jobId: idOf(job),
    });
    const refused = (): number =>
      node.ploy.requestsTo('complete').filter(({ status }) => status === 422).length;
    const program = node.start('claim', '--window', '100');
    // Given while its records are still open, it would only be looked at.
    await expect.poll(() => node.endedJobs(), { timeout: 60_000 }).toContain(idOf(job));
    for (let round = 2; round <= 5; round += 1) {
      const before = refused();
      node.ploy.setStatus(idOf(job), 'Queued');
      // As it is, and as the error that takes its place.
      await node.ploy.waitUntil('its end', () => refused() === before + 2);
    }
    const other = node.ploy.queueJob({ command: 'true' });
    await node.ploy.waitUntil('the end of the other', () => other.completions.length === 1);
    program.child.kill('SIGTERM');
    await program.ended;
    expect(readStarts(node, job)).toBe('x\n');
    const claimedAtMs = claimsOf(job);
    expect(claimedAtMs).toHaveLength(5);
    // After the first one that is refused: 250 ms, 500 ms and 1 s, each less its half.
    expect((claimedAtMs[4] ?? 0) - (claimedAtMs[1] ?? 0)).toBeGreaterThan(850);
    expect(node.ploy.requestsTo('claim').length).toBeLessThan(60);
    expect(job.completions).toEqual([]);
    expect(node.openJobs()).not.toContain(idOf(job));
  });

  it('while it runs here goes on as the one that it is', async () => {
    const node = await makeClaimNode();
    const job = node.ploy.queueJob({
      command: 'echo x >> /out/starts; echo begun; while [ ! -e /out/go ]; do sleep 0.1; done',
    });
    const program = node.start('claim', '--window', '90');
    await node.ploy.waitUntil('its first line', () => job.chunks.size > 0);
    node.ploy.setStatus(idOf(job), 'Queued');
    await node.ploy.waitUntil('the second claim', () => claimsOf(job).length === 2);
    const [container = '', ...others] = await node.containers();
    expect(others).toEqual([]);
    await askDocker(node.socket, ['exec', container, 'touch', '/out/go']);
    await node.ploy.waitUntil('its end', () => job.completions.length > 0);
    program.child.kill('SIGTERM');
    await program.ended;
    expect(job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
    expect(readStarts(node, job)).toBe('x\n');
    expect(node.ploy.state.violations).toEqual([]);
  });
});

/** Another container is made under the job's name at the moment that the job's own is asked for. */
async function takeName(proxy: EngineProxy, job: PloyJob, labels: readonly string[]): Promise<() => string> {
  let id = '';
  proxy.beforeRequest = async (line) => {
    if (line !== 'POST /containers/create' || id !== '') return;
    const words = labels.flatMap((label) => ['--label', label]);
    const image = ['reeve-demo/box:v1', 'sh', '-c', 'echo taken; exit 5'];
    const name = `reeve-job-${idOf(job)}`;
    id = (await askDocker(engineSocket(), ['create', '--name', name, ...words, ...image])).trim();
  };
  return () => id;
}

describe('R35: a container that has the name of a job', () => {
  it('with its labels is its own, asked for by a run that was killed: it is started', async () => {
    const proxy = await startEngineProxy(engineSocket());
    const runs = await makeJobRuns(proxy.socket);
    const job = runs.claim({ command: 'echo new' });
    await takeName(proxy, job, [`com.ploy.run_id=${job.payload.id}`, `com.ploy.job_id=${idOf(job)}`]);
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: 5 }]);
    expect([runs.isClosed(job), await runs.containers(job)]).toEqual([true, []]);
  });

  it('and is not there yet, as it is still being made, is waited for', async () => {
    const proxy = await startEngineProxy(engineSocket());
    let refused = 0;
    proxy.answerInstead = (line) => {
      if (line !== 'POST /containers/create' || refused === 2) return undefined;
      refused += 1;
      return { status: 409, body: { message: 'Conflict. The container name is already in use' } };
    };
    const runs = await makeJobRuns(proxy.socket);
    const job = runs.claim({ command: 'echo new' });
    expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);
    expect([refused, job.completions]).toMatchObject([2, [{ status: 'Success', exit_code: 0 }]]);
    expect([runs.isClosed(job), await runs.containers(job)]).toEqual([true, []]);
  });

  it('with the labels of another one is left as it is, and the job ends once as an error that names it', async () => {
    const proxy = await startEngineProxy(engineSocket());
    const runs = await makeJobRuns(proxy.socket);
    const job = runs.claim({ command: 'echo new' });
    const taken = await takeName(proxy, job, ['com.ploy.run_id=other', 'com.ploy.job_id=other']);
    const end = await runs.reeve('job', 'run', idOf(job));
    const state = await askDocker(engineSocket(), ['inspect', '--format', '{{.State.Status}}', taken()]);
    await askDocker(engineSocket(), ['rm', taken()]);
    expect([end.status, state]).toEqual([0, 'created\n']);
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
    expect(job.completions[0]?.stats?.error).toContain(`reeve-job-${idOf(job)}`);
    expect(runs.isClosed(job)).toBe(true);
  });
});
