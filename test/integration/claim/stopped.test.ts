// `reeve claim` told to stop, at each point of its way: it ends in time with 143, and no job is lost or runs twice.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ClaimNode, makeClaimNode } from '../../support/claim-node.ts';
import { askDocker } from '../../support/node.ts';
import { readLines } from '../../support/ploy/jobs.ts';
import type { PloyJob } from '../../support/ploy/model.ts';
import { choosePoints } from '../../support/points.ts';
import type { Program } from '../../support/programs.ts';
import { watchStandstill } from '../../support/standstill.ts';

const idOf = (job: PloyJob): string => job.payload.job_id;
const countsStarts =
  'echo x >> /share/starts; echo begun; while [ ! -e /out/go ]; do sleep 0.1; done; echo late';

const startsOf = (node: ClaimNode, job: PloyJob): string =>
  readFileSync(join(node.root, 'work/runs', job.payload.id, 'artifacts/shared/starts'), 'utf8');

/**
 * Its end and how long it took, without what the machine stood still. `status`: as a shell has it, since a signal that comes when
 * nobody heeds it any more ends the process all the same.
 */
async function stop(program: Program): Promise<{ status: number | null; ms: number; stderr: string }> {
  const still = watchStandstill();
  const startedAtMs = Date.now();
  program.child.kill('SIGTERM');
  const { status, signal, stderr } = await program.ended;
  const endedAtMs = Date.now();
  const ms = endedAtMs - startedAtMs - still.within(startedAtMs, endedAtMs);
  return { status: signal === 'SIGTERM' ? 143 : status, stderr, ms };
}

async function untilAsked(node: ClaimNode, count = 1): Promise<void> {
  await expect
    .poll(() => node.ploy.requestsTo('claim').length, { interval: 10, timeout: 30_000 })
    .toBeGreaterThanOrEqual(count);
}

async function untilRunning(node: ClaimNode, job: PloyJob): Promise<string> {
  await node.ploy.waitUntil('its first line', () => job.chunks.size > 0);
  const [container = ''] = await node.containers();
  return container;
}

describe('P46 P34: claim, told to stop', () => {
  it('between two questions ends at once', async () => {
    const node = await makeClaimNode();
    const program = node.start('claim', '--window', '60');
    await untilAsked(node, 3);
    const end = await stop(program);
    expect(end).toMatchObject({ status: 143, stderr: '' });
    expect(end.ms).toBeLessThan(3_000);
  });

  it('while the server thinks waits for its word: no job is lost, none is started and none told', async () => {
    const node = await makeClaimNode();
    node.ploy.faults.add({ route: 'claim', kind: 'slow', ms: 2_000, times: 1 });
    const job = node.ploy.queueJob({ command: countsStarts });
    const program = node.start('claim', '--window', '60');
    await untilAsked(node);
    const end = await stop(program);
    expect(end.status).toBe(143);
    expect(end.ms).toBeLessThan(10_000);
    expect([node.openJobs(), job.completions]).toEqual([[idOf(job)], []]);
    const next = node.start('claim', '--window', '0');
    const container = await untilRunning(node, job);
    await askDocker(node.socket, ['exec', container, 'touch', '/out/go']);
    expect((await next.ended).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
    expect(startsOf(node, job)).toBe('x\n');
    expect(node.ploy.state.violations).toEqual([]);
  });

  it('while the server says nothing ends within the time of one question', async () => {
    const node = await makeClaimNode();
    node.ploy.faults.add({ route: 'claim', kind: 'silence' });
    const program = node.start('claim', '--window', '60');
    await untilAsked(node);
    const end = await stop(program);
    expect(end.status).toBe(143);
    // One takes ten seconds at most, and a second one as long again.
    expect(end.ms).toBeLessThan(15_000);
    expect(node.ploy.requestsTo('claim')).toHaveLength(1);
  });

  it('while all slots are taken ends at once, and the container goes on', async () => {
    const node = await makeClaimNode({ concurrency: 1 });
    const jobs = [node.ploy.queueJob({ command: countsStarts }), node.ploy.queueJob()] as const;
    const program = node.start('claim', '--window', '60');
    const container = await untilRunning(node, jobs[0]);
    const end = await stop(program);
    expect(end.status).toBe(143);
    expect(end.ms).toBeLessThan(10_000);
    expect([await node.containers(), node.openJobs()]).toEqual([[container], [idOf(jobs[0])]]);
    expect(jobs[1].status).toBe('Queued');
    expect(jobs[0].completions).toEqual([]);
    await askDocker(node.socket, ['exec', container, 'touch', '/out/go']);
    const next = node.start('claim', '--window', '100');
    await node.ploy.waitUntil('their ends', () => jobs.every(({ completions }) => completions.length > 0));
    await expect.poll(() => node.openJobs(), { timeout: 60_000 }).toEqual([]);
    next.child.kill('SIGTERM');
    await next.ended;
    expect(jobs.map(({ status }) => status)).toEqual(['Success', 'Success']);
    expect(readLines(jobs[0])).toEqual(['begun', 'late']);
    expect([startsOf(node, jobs[0]), await node.containers()]).toEqual(['x\n', []]);
    expect(node.ploy.state.violations).toEqual([]);
  });

  it('while four children run hands it on to each, and the next one has all of them again', async () => {
    const node = await makeClaimNode({ concurrency: 4 });
    const jobs = Array.from({ length: 4 }, () => node.ploy.queueJob({ command: countsStarts }));
    const program = node.start('claim', '--window', '60');
    for (const job of jobs) await untilRunning(node, job);
    const end = await stop(program);
    expect(end.status).toBe(143);
    expect(end.ms).toBeLessThan(10_000);
    expect((await node.containers()).length).toBe(4);
    for (const id of await node.containers()) await askDocker(node.socket, ['exec', id, 'touch', '/out/go']);
    expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
    expect(jobs.map(({ status }) => status)).toEqual(jobs.map(() => 'Success'));
    expect(jobs.map((job) => startsOf(node, job))).toEqual(jobs.map(() => 'x\n'));
    expect([node.openJobs(), await node.containers()]).toEqual([[], []]);
  });

  it('R59: twice ends no later, and leaves nothing that the next one would not find', async () => {
    const node = await makeClaimNode();
    const job = node.ploy.queueJob({ command: countsStarts });
    const program = node.start('claim', '--window', '60');
    const container = await untilRunning(node, job);
    const again = setInterval(() => program.child.kill('SIGTERM'), 50);
    const end = await stop(program);
    clearInterval(again);
    expect(end.status).toBe(143);
    expect(end.ms).toBeLessThan(10_000);
    await askDocker(node.socket, ['exec', container, 'touch', '/out/go']);
    expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
  });

  it('R59: at any moment around an answer: each job runs once, with the next claim or at once', {
    timeout: 400_000,
  }, async () => {
    const node = await makeClaimNode();
    const jobs: PloyJob[] = [];
    let kept = 0;
    for (const point of choosePoints(21)) {
      const ms = (point - 1) * 6;
      const job = node.ploy.queueJob({ command: 'echo x >> /share/starts; echo line' });
      jobs.push(job);
      const seen = node.ploy.requestsTo('claim').length;
      const program = node.start('claim', '--window', '60');
      await untilAsked(node, seen + 1);
      await new Promise((resolve) => setTimeout(resolve, ms));
      const end = await stop(program);
      expect(end.status).toBe(143);
      expect(end.ms).toBeLessThan(10_000);
      kept += node.openJobs().length;
      await node.reeve('claim', '--window', '0');
      expect([ms, job.completions]).toMatchObject([ms, [{ status: 'Success', exit_code: 0 }]]);
    }
    console.log(`figure: ${jobs.length} stops within 120 ms of a question, ${kept} left an open job`);
    expect(jobs.map((job) => startsOf(node, job))).toEqual(jobs.map(() => 'x\n'));
    expect(jobs.map((job) => readLines(job))).toEqual(jobs.map(() => ['line']));
    expect([node.openJobs(), await node.containers(), node.ploy.state.violations]).toEqual([[], [], []]);
    expect(kept).toBeGreaterThan(0);
  });
});
