// Containers that the original has left, in a real engine: which of them are told, which are left alone, and the slots they take.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { type ClaimNode, makeClaimNode } from '../../support/claim-node.ts';
import { engineSocket } from '../../support/engine.ts';
import { startEngineProxy } from '../../support/engine-proxy.ts';
import { fakeClock } from '../../support/faked-clock.ts';
import { askDocker } from '../../support/node.ts';
import type { PloyJob } from '../../support/ploy/model.ts';
import { startProcess } from '../../support/programs.ts';

type Left = { job: PloyJob; id: string };

/** A job that the server believes to run here, with a container of the original. */
async function leave(node: ClaimNode, command: string): Promise<Left> {
  const job = node.ploy.queueJob();
  job.nodeId = 'node-1';
  node.ploy.setStatus(job.payload.job_id, 'Running');
  const { id: runId, job_id: jobId } = job.payload;
  return { job, id: await node.runForeign({ runId, jobId }, command) };
}

async function leaveEnded(node: ClaimNode, command = 'exit 3'): Promise<Left> {
  const left = await leave(node, command);
  await askDocker(node.socket, ['wait', left.id]);
  return left;
}

/** `claim` once, by a clock that stands still at that second. */
async function claimAt(node: ClaimNode, atMs: number) {
  const env = {
    ...node.env,
    ...fakeClock(new Date(atMs).toISOString().slice(0, 19).replace('T', ' ')),
  };
  return await startProcess(inject('reeveBin'), ['claim', '--window', '0'], env).ended;
}

/** Where the node's requests to the engine go instead. */
function useSocket(node: ClaimNode, socket: string): void {
  const file = join(node.root, 'etc/reeve.yaml');
  const config = JSON.parse(readFileSync(file, 'utf8'));
  writeFileSync(file, JSON.stringify({ ...config, cluster: { ...config.cluster, docker: { socket } } }));
}

describe('a container that has ended', () => {
  it('P38, P39: is told in the second in which it is 120 s old, and left alone in the next one', async () => {
    const node = await makeClaimNode();
    const { job, id } = await leaveEnded(node);
    const text = await askDocker(node.socket, ['inspect', '--format', '{{.State.FinishedAt}}', id]);
    const endedAtMs = Math.floor(Date.parse(text.trim()) / 1000) * 1000;
    const late = await claimAt(node, endedAtMs + 121_000);
    expect([late.status, node.ploy.requestsTo('complete').length]).toEqual([0, 0]);
    expect([job.status, node.openJobs()]).toEqual(['Running', []]);
    expect((await claimAt(node, endedAtMs + 120_000)).status).toBe(0);
    expect(job.completions).toMatchObject([
      {
        status: 'Error',
        exit_code: 3,
        stats: { metadata: { source: 'startup_reconcile', container_id: id } },
      },
    ]);
    expect(node.ploy.state.violations).toEqual([]);
  });

  it('P43: at a time that is not known, as it never began, is left alone', async () => {
    const node = await makeClaimNode();
    const failed = await leave(node, 'true').then(async ({ job, id }) => {
      await askDocker(node.socket, ['rm', '-f', id]);
      return job;
    });
    const { id: runId, job_id: jobId } = failed.payload;
    const labels = ['--label', `com.ploy.run_id=${runId}`, '--label', `com.ploy.job_id=${jobId}`];
    const words = ['run', '-d', ...labels, 'reeve-demo/worker:v1', '/no/such/program'];
    await expect(askDocker(node.socket, words)).rejects.toThrow(/no\/such\/program/);
    const [container = ''] = await node.containers();
    const about = ['inspect', '--format', '{{.State.FinishedAt}} {{.State.ExitCode}}', container];
    expect(await askDocker(node.socket, about)).toBe('0001-01-01T00:00:00Z 127\n');
    const end = await node.reeve('claim', '--window', '0');
    expect([end.status, node.ploy.requestsTo('complete').length]).toEqual([0, 0]);
    expect([node.openJobs(), await node.containers()]).toEqual([[], [container]]);
  });
});

describe('P44: containers that run', () => {
  it('take slots: nothing is claimed while there are as many as slots, or more, and again when there are fewer', async () => {
    const node = await makeClaimNode({ concurrency: 2 });
    const left: Left[] = [];
    for (let i = 0; i < 3; i += 1) left.push(await leave(node, 'while [ ! -e /go ]; do sleep 0.1; done'));
    const next = node.ploy.queueJob({ command: 'true' });
    const program = node.start('claim', '--window', '100');
    const ended: string[] = [];
    const endOne = async (): Promise<void> => {
      const [one] = left.splice(0, 1);
      if (one === undefined) throw new Error('there is none');
      await askDocker(node.socket, ['exec', one.id, 'touch', '/go']);
      await node.ploy.waitUntil('its end', () => one.job.completions.length === 1);
      ended.push(one.job.payload.job_id);
    };
    await node.ploy.waitUntil('a question about each', () => node.ploy.requestsTo('status').length >= 3);
    await endOne();
    // Two are left, which is as many as there are slots.
    const asked = node.ploy.requestsTo('status').length;
    // Of each more than one, so that whoever waits for a slot has looked for one as well.
    await node.ploy.waitUntil('further questions', () => node.ploy.requestsTo('status').length > asked + 3);
    expect(node.ploy.requestsTo('claim')).toEqual([]);
    await endOne();
    await node.ploy.waitUntil('the end of the queued one', () => next.completions.length === 1);
    await endOne();
    const routes = node.ploy.state.requests.filter(({ route }) => route === 'claim' || route === 'complete');
    expect(routes.slice(0, 3).map(({ route }) => route)).toEqual(['complete', 'complete', 'claim']);
    program.child.kill('SIGTERM');
    await program.ended;
    expect(ended.map((jobId) => node.ploy.job(jobId).status)).toEqual(['Success', 'Success', 'Success']);
    expect(next.completions).toMatchObject([{ status: 'Success' }]);
    expect(node.ploy.state.violations).toEqual([]);
  });
});

describe('P45: a container that cannot be looked at', () => {
  it('is told, here and as an event of its run, and the others are completed and taken over', async () => {
    const node = await makeClaimNode();
    const bad = await leaveEnded(node);
    const others = [await leaveEnded(node, 'exit 0'), await leaveEnded(node, 'exit 1')];
    const running = await leave(node, 'while [ ! -e /go ]; do sleep 0.1; done; exit 7');
    const proxy = await startEngineProxy(engineSocket());
    proxy.beforeRequest = async (line) => {
      // Taken over: then it may end.
      if (line !== `POST /containers/${running.id}/wait`) return;
      await askDocker(node.socket, ['exec', running.id, 'touch', '/go']);
    };
    proxy.beforeAnswer = (line) => {
      if (line === `GET /containers/${bad.id}/json`) throw new Error('the engine hangs up');
    };
    useSocket(node, proxy.socket);
    const end = await node.reeve('claim', '--window', '0');
    expect([end.status, end.stdout]).toEqual([1, expect.stringContaining(bad.id)]);
    expect(bad.job.completions).toEqual([]);
    expect(bad.job.events.map(({ level, message }) => [level, message.includes(bad.id)])).toEqual([
      ['error', true],
    ]);
    expect(others.map(({ job }) => job.completions.map(({ status }) => status))).toEqual([
      ['Success'],
      ['Fail'],
    ]);
    expect(running.job.completions).toMatchObject([{ status: 'Error', exit_code: 7 }]);
    expect(node.ploy.requestsTo('claim')).toHaveLength(1);
    // The next one can, and tells its end.
    proxy.beforeAnswer = () => {};
    proxy.beforeRequest = () => {};
    expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
    expect(bad.job.completions).toMatchObject([{ status: 'Error', exit_code: 3 }]);
  });

  it('as somebody has just removed it, is nothing to tell', async () => {
    const node = await makeClaimNode();
    const gone = await leaveEnded(node);
    const other = await leaveEnded(node, 'exit 1');
    const proxy = await startEngineProxy(engineSocket());
    proxy.beforeRequest = async (line) => {
      if (line === `GET /containers/${gone.id}/json`) await askDocker(node.socket, ['rm', gone.id]);
    };
    useSocket(node, proxy.socket);
    const end = await node.reeve('claim', '--window', '0');
    expect([end.status, gone.job.completions, gone.job.events]).toEqual([0, [], []]);
    expect(other.job.completions).toMatchObject([{ status: 'Fail', exit_code: 1 }]);
  });
});
