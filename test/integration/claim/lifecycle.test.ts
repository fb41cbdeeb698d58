import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { until } from '../../support/balanced.ts';
import { makeClaimNode } from '../../support/claim-node.ts';
import { askDocker } from '../../support/node.ts';
import { makeKsuid, readLines } from '../../support/ploy/jobs.ts';

it('P46 P47 asks once in a window of 0, after one look at the engine, and starts nothing for 204', async () => {
  const node = await makeClaimNode();
  const end = await node.reeve('claim', '--window', '0');
  expect([end.status, end.stdout]).toEqual([0, 'no job was offered\n']);
  expect(node.ploy.state.requests.map(({ route, status }) => [route, status])).toEqual([['claim', 204]]);
  expect(node.ploy.state.violations).toEqual([]);
  expect(await node.containers()).toEqual([]);
});

it('P33 P38 P40 P54 completes what ended a moment ago before it claims, and takes 409 for success', async () => {
  const node = await makeClaimNode();
  const job = node.ploy.queueJob();
  const { id: runId, job_id: jobId } = job.payload;
  job.nodeId = 'node-1';
  node.ploy.setStatus(jobId, 'Running');
  const ids = [await node.runForeign({ runId, jobId }, 'exit 1')];
  const gone = node.ploy.queueJob();
  gone.nodeId = 'node-1';
  node.ploy.setStatus(gone.payload.job_id, 'Success');
  ids.push(await node.runForeign({ runId: gone.payload.id, jobId: gone.payload.job_id }, 'true'));
  await askDocker(node.socket, ['wait', ...ids]);
  const end = await node.reeve('claim', '--window', '0');
  expect(end.status).toBe(0);
  expect(job.completions).toEqual([
    {
      status: 'Fail',
      exit_code: 1,
      stats: {
        exit_code: 1,
        duration_ms: expect.any(Number),
        metadata: { source: 'startup_reconcile', container_id: ids[0] },
      },
    },
  ]);
  const routes = node.ploy.state.requests.map(({ route }) => route);
  expect(routes.at(-1)).toBe('claim');
  expect(routes.filter((route) => route === 'claim')).toHaveLength(1);
  expect(routes.filter((route) => route === 'complete')).toHaveLength(2);
  expect(node.openJobs()).toEqual([]);
});

it('P42 ignores containers that lack a label or have it blank', async () => {
  const node = await makeClaimNode();
  const id = await node.runForeign({ runId: '', jobId: makeKsuid('Job') }, 'true');
  await askDocker(node.socket, ['wait', id]);
  expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
  expect(node.ploy.requestsTo('complete')).toEqual([]);
});

it.each(['--help', '-h'])(
  'P50 ends a job whose id looks like an option, and frees its slot: %s',
  async (jobId) => {
    const node = await makeClaimNode();
    node.ploy.queueJob({ jobId });
    const end = await node.reeve('claim', '--window', '0');
    expect(end.stderr).toContain('cannot use claim: job_id is no id');
    expect(node.ploy.requestsTo('complete')).toHaveLength(1);
    expect(node.openJobs()).toEqual([]);
  },
);

it('ends with 69 before any claim where the engine does not answer', async () => {
  const node = await makeClaimNode();
  const jobs = JSON.parse(JSON.stringify({ docker: { socket: join(node.root, 'no.sock') } }));
  const config = join(node.root, 'etc/reeve.yaml');
  const text = JSON.parse((await import('node:fs')).readFileSync(config, 'utf8'));
  writeFileSync(config, JSON.stringify({ ...text, cluster: { ...text.cluster, ...jobs } }));
  const end = await node.reeve('claim', '--window', '0');
  expect(end.status).toBe(69);
  expect(node.ploy.state.requests).toEqual([]);
});

it('R32 starts anyway with records that are empty, of the wrong shape or unknown', async () => {
  const node = await makeClaimNode();
  const job = node.ploy.queueJob();
  const { job_id: jobId } = job.payload;
  job.nodeId = 'node-1';
  node.ploy.setStatus(jobId, 'Running');
  const place = join(node.stateDir, 'jobs', jobId);
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, 'claim.json'), '');
  writeFileSync(join(node.stateDir, 'jobs/what.json'), '{}');
  const end = await node.reeve('claim', '--window', '0');
  expect(end.status).toBe(0);
  expect(job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
  expect(end.stderr.match(/state file lost/g)).toHaveLength(1);
  expect(node.openJobs()).toEqual([]);
});

it('P48 P50 P51 P54 claims a job, runs it, sends its log and its end', async () => {
  const node = await makeClaimNode();
  const job = node.ploy.queueJob({ command: 'echo one; echo two' });
  const end = await node.reeve('claim', '--window', '0');
  expect([end.status, end.stderr]).toEqual([0, expect.any(String)]);
  expect(job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
  expect(readLines(job)).toEqual(['one', 'two']);
  expect(node.ploy.state.violations).toEqual([]);
  expect([node.openJobs(), node.endedJobs()]).toEqual([[], [job.payload.job_id]]);
  expect(await node.containers()).toEqual([]);
});

it('P7 P56 never has more containers than its concurrency', async () => {
  const node = await makeClaimNode({ concurrency: 4 });
  const command = 'while [ ! -e /tmp/go ]; do sleep 0.1; done';
  const jobs = Array.from({ length: 5 }, () => node.ploy.queueJob({ command }));
  const program = node.start('claim', '--window', '110');
  let most = 0;
  const look = async (): Promise<string[]> => {
    const containers = await node.containers();
    most = Math.max(most, containers.length);
    return containers;
  };
  await until(async () => (await look()).length >= 4, 60_000);
  expect(jobs.map(({ status }) => status).sort()).toEqual(['Queued', ...Array(4).fill('Running')]);
  await until(async () => {
    // Where it has started and not ended yet.
    for (const id of await look())
      await askDocker(node.socket, ['exec', id, 'touch', '/tmp/go']).catch(() => '');
    return jobs.every(({ completions }) => completions.length > 0);
  }, 60_000);
  program.child.kill('SIGTERM');
  expect((await program.ended).status).toBe(143);
  expect(most).toBe(4);
  expect(jobs.map(({ status }) => status)).toEqual(Array.from({ length: 5 }, () => 'Success'));
});

it('P34 P35 P36 P37 takes over a container that runs, with its log and its end', async () => {
  const node = await makeClaimNode();
  const job = node.ploy.queueJob();
  const { id: runId, job_id: jobId } = job.payload;
  job.nodeId = 'node-1';
  node.ploy.setStatus(jobId, 'Running');
  const command = 'echo before; while [ ! -e /go ]; do sleep 0.1; done; echo after; exit 7';
  const container = await node.runForeign({ runId, jobId }, command);
  const program = node.start('claim', '--window', '0');
  await node.ploy.waitUntil('its first line', () => job.chunks.size > 0);
  await askDocker(node.socket, ['exec', container, 'touch', '/go']);
  expect((await program.ended).status).toBe(0);
  expect(job.completions).toMatchObject([{ status: 'Error', exit_code: 7 }]);
  expect(readLines(job)).toEqual(['before', 'after']);
});

it('R36 P63 makes a job of the answer that a killed claimer has kept', async () => {
  const node = await makeClaimNode();
  const job = node.ploy.queueJob({ command: 'echo kept' });
  job.nodeId = 'node-1';
  node.ploy.setStatus(job.payload.job_id, 'Running');
  mkdirSync(join(node.stateDir, 'jobs'), { recursive: true });
  const text = JSON.stringify({ claimedAt: new Date().toISOString(), payload: job.payload });
  writeFileSync(join(node.stateDir, 'jobs/.answer-run-1.json'), text);
  expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
  expect([job.status, job.completions.length]).toEqual(['Success', 1]);
  expect(readdirSync(join(node.stateDir, 'jobs'))).toEqual([]);
});
