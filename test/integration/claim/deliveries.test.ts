// Ends that an earlier claim could not tell: many of them, and a server that is slow to take them or does not.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openJob } from '../../../src/lib/jobs/book.ts';
import { jobKey } from '../../../src/lib/jobs/records.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { type ClaimNode, makeClaimNode } from '../../support/claim-node.ts';
import { engineSocket } from '../../support/engine.ts';
import { startEngineProxy } from '../../support/engine-proxy.ts';
import { askDocker } from '../../support/node.ts';
import type { PloyJob } from '../../support/ploy/model.ts';

function write(directory: string, name: string, value: object): void {
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, name), JSON.stringify({ version: 1, ...value }));
}

/** Ended here, and not told to the server. */
function endUndelivered(node: ClaimNode, claim: object = {}): PloyJob {
  const job = node.ploy.queueJob();
  const { id: runId, job_id: jobId } = job.payload;
  job.nodeId = 'node-1';
  node.ploy.setStatus(jobId, 'Running');
  const directory = join(node.stateDir, 'jobs', jobId);
  const at = new Date().toISOString();
  write(directory, 'claim.json', { source: 'claim', claimedAt: at, runId, jobId, payload: {}, ...claim });
  const body = { status: 'Fail', exit_code: 1 };
  write(directory, 'completion.json', { body, decidedAt: at, attempts: 4 });
  return job;
}

it('P34 P36 takes up what runs before it waits for a server that does not answer', async () => {
  const node = await makeClaimNode();
  const ended = [endUndelivered(node), endUndelivered(node)];
  const job = node.ploy.queueJob();
  const { id: runId, job_id: jobId } = job.payload;
  job.nodeId = 'node-1';
  node.ploy.setStatus(jobId, 'Running');
  const going = 'echo taken up; while [ ! -e /go ]; do sleep 0.1; done';
  const container = await node.runForeign({ runId, jobId }, going);
  const heal = node.ploy.faults.add({ route: 'complete', kind: 'silence' });
  const program = node.start('claim', '--window', '0');
  // Whoever waits for the server first waits for four answers, for ten seconds each.
  await node.ploy.waitUntil('its first line', () => job.chunks.size > 0, 20_000);
  heal();
  await askDocker(node.socket, ['exec', container, 'touch', '/go']);
  expect((await program.ended).status).toBe(0);
  expect([...ended, job].map(({ completions }) => completions.length)).toEqual([1, 1, 1]);
});

it('P61 tries the ends side by side, and each once after one that was not taken', async () => {
  const node = await makeClaimNode({ concurrency: 64 });
  const jobs = Array.from({ length: 20 }, () => endUndelivered(node));
  node.ploy.faults.add({ route: 'complete', kind: 'answer', status: 503 });
  await node.reeve('claim', '--window', '0');
  const routes = node.ploy.state.requests.map(({ route }) => route);
  // What comes after the pass are the processes of the jobs.
  const requests = routes.slice(0, routes.indexOf('claim')).filter((route) => route === 'complete').length;
  expect(requests).toBeGreaterThanOrEqual(jobs.length);
  // Eight at once, four times each, and twelve once.
  expect(requests).toBeLessThanOrEqual(8 * 4 + 12);
  expect(node.openJobs()).toHaveLength(jobs.length);
  node.ploy.faults.clear();
  expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
  expect(jobs.map(({ status }) => status)).toEqual(jobs.map(() => 'Fail'));
});

it('P45 does not call a job undelivered whose container cannot be removed', async () => {
  const proxy = await startEngineProxy(engineSocket());
  proxy.answerInstead = (line) =>
    line.startsWith('DELETE /containers/') ? { status: 500, body: { message: 'it is busy' } } : undefined;
  const node = await makeClaimNode({ socket: proxy.socket });
  const job = endUndelivered(node, { containerId: 'c'.repeat(64) });
  const end = await node.reeve('claim', '--window', '0');
  expect([end.status, job.completions.length, job.events, node.openJobs()]).toEqual([0, 1, [], []]);
  expect(end.stderr).toContain('cannot remove the container');
});

it('ends a job by its own id where its directory is named by a digest of it', async () => {
  const node = await makeClaimNode({ concurrency: 1 });
  const jobId = 'a job of an API/1';
  const ctx = { paths: { stateDir: node.stateDir }, clock: systemClock, log: silentLog };
  const claim = { source: 'api', claimedAt: new Date().toISOString(), runId: 'run', jobId } as const;
  await openJob(ctx as unknown as Parameters<typeof openJob>[0], claim);
  writeFileSync(join(node.stateDir, 'jobs', jobKey(jobId), 'claim.json'), '');
  expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
  expect(node.ploy.requestsTo('complete').map(({ path }) => path)).toEqual([
    `/v1/jobs/${encodeURIComponent(jobId)}/complete`,
  ]);
  expect(node.openJobs()).toEqual([]);
});

it('says so of a job of which nothing but a digest is known', async () => {
  const node = await makeClaimNode();
  const directory = join(node.stateDir, 'jobs', jobKey('a job of an API/1'));
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'claim.json'), '');
  const end = await node.reeve('claim', '--window', '0');
  expect(end.status).toBe(1);
  expect(end.stderr).toContain('its id is not known');
});
