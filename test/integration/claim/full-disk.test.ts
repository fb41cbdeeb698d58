// Disks that are full, for real: before a job is asked for, and just as its answer comes. A job that cannot be kept does not hang on
// the server, no slot is lost, and the next claim with room works.
import { execFileSync } from 'node:child_process';
import { readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { type ClaimNode, makeClaimNode } from '../../support/claim-node.ts';
import { fillDisk, mountSmall } from '../../support/full-disk.ts';
import type { PloyJob } from '../../support/ploy/model.ts';
import { startProcess } from '../../support/programs.ts';

/** But for so many files. */
function fillInodes(directory: string, files: number): () => void {
  const { ffree } = statfsSync(directory);
  const names = Array.from({ length: ffree - files }, (_, n) => join(directory, `filler-${n}`));
  for (const name of names) writeFileSync(name, '');
  return () => {
    for (const name of names) rmSync(name);
  };
}

/** Claims once; the disk is filled after the server was asked and before it answers. Gives how to make room again. */
async function claimOntoFullDisk(node: ClaimNode, makeFull: (directory: string) => () => void) {
  const heal = node.ploy.faults.add({ route: 'claim', kind: 'slow', ms: 2_000, times: 1 });
  const program = node.start('claim', '--window', '0');
  await expect.poll(() => node.ploy.requestsTo('claim').length, { interval: 10, timeout: 30_000 }).toBe(1);
  heal();
  const makeRoom = makeFull(node.stateDir);
  return { end: await program.ended, makeRoom };
}

async function expectNextJobRuns(node: ClaimNode): Promise<void> {
  const next = node.ploy.queueJob({ command: 'echo next' });
  const end = await node.reeve('claim', '--window', '0');
  expect([end.status, next.completions]).toMatchObject([0, [{ status: 'Success', exit_code: 0 }]]);
  expect([node.openJobs(), await node.containers()]).toEqual([[], []]);
  expect(node.ploy.state.violations).toEqual([]);
}

const hasAnswers = ({ stateDir }: ClaimNode): boolean =>
  readdirSync(join(stateDir, 'jobs')).some((name) => name.startsWith('.answer-'));

const idOf = (job: PloyJob): string => job.payload.job_id;

describe('a disk that is full when the answer comes', () => {
  it('P49 P59 O55: ends the job as an error that says so, gives the slot back, and the next claim works', async () => {
    const node = await makeClaimNode({ concurrency: 1 });
    mountSmall(node.stateDir, 'size=24m');
    const job = node.ploy.queueJob();
    const { end, makeRoom } = await claimOntoFullDisk(node, (at) => fillDisk(at));
    expect(end.status).not.toBe(0);
    expect(end.stderr).toMatch(/cannot keep the job: .*ENOSPC/);
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
    expect(job.completions[0]?.stats?.error).toMatch(/cannot keep the job: .*(ENOSPC|no space left)/);
    expect([node.openJobs(), await node.containers()]).toEqual([[], []]);
    makeRoom();
    await expectNextJobRuns(node);
  });

  it.each([1, 2, 3, 4, 6, 8])(
    'O55 R30: with room for %i pages: the job ends once, and the next claim works',
    async (pages) => {
      const node = await makeClaimNode({ concurrency: 1 });
      mountSmall(node.stateDir, 'size=24m');
      const job = node.ploy.queueJob({ command: 'echo x >> /share/starts' });
      const { makeRoom } = await claimOntoFullDisk(node, (at) => fillDisk(at, pages));
      makeRoom();
      // Where it could be kept and not be run, it still has the slot.
      if (node.openJobs().length > 0 || hasAnswers(node))
        expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
      await expectNextJobRuns(node);
      expect(job.completions).toHaveLength(1);
      expect(['Success', 'Error']).toContain(job.status);
      console.log(`figure: ${pages} pages free: ${job.status} ${job.completions[0]?.stats?.error ?? ''}`);
    },
  );

  it('O55: and has no inode left: the same', async () => {
    const node = await makeClaimNode({ concurrency: 1 });
    mountSmall(node.stateDir, 'size=24m,nr_inodes=64');
    const job = node.ploy.queueJob();
    const { end, makeRoom } = await claimOntoFullDisk(node, (at) => fillInodes(at, 0));
    expect(end.status).not.toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
    makeRoom();
    await expectNextJobRuns(node);
  });

  it('R30: but for its answer: that becomes the job, and the job is not ended', async () => {
    const node = await makeClaimNode({ concurrency: 1 });
    mountSmall(node.stateDir, 'size=24m,nr_inodes=64');
    const job = node.ploy.queueJob({ command: 'echo kept' });
    const { end, makeRoom } = await claimOntoFullDisk(node, (at) => fillInodes(at, 2));
    expect(end.stderr).toContain(`cannot open job ${idOf(job)}`);
    expect([end.status, job.completions, hasAnswers(node)]).toEqual([1, [], true]);
    makeRoom();
    expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
    expect(job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
    await expectNextJobRuns(node);
  });
});

describe('a disk without enough room', () => {
  it.each([
    [
      'of the records',
      (node: ClaimNode) => ({ at: node.stateDir, size: '8m', env: {} }),
      /16 MiB are needed/,
    ],
    [
      'of the workspaces',
      (node: ClaimNode) => ({ at: join(node.root, 'work'), size: '512m', env: {} }),
      /1024 MiB are needed/,
    ],
    [
      'of the engine',
      (node: ClaimNode) => {
        const at = join(node.root, 'engine');
        return { at, size: '512m', env: { DOCKER_ROOT_DIR: at } };
      },
      /1024 MiB are needed/,
    ],
  ])('P56: %s keeps the node from asking, and says so; with room it asks again', async (_, place, words) => {
    const node = await makeClaimNode({ concurrency: 1 });
    const { at, size, env } = place(node);
    mountSmall(at, `size=${size}`);
    const job = node.ploy.queueJob({ command: 'echo roomy' });
    const claim = (window: string) =>
      startProcess(inject('reeveBin'), ['claim', '--window', window], { ...node.env, ...env });
    const first = await claim('0').ended;
    expect([first.status, node.ploy.state.requests.length, job.status]).toEqual([69, 0, 'Queued']);
    expect(first.stderr).toContain(`cannot take a job: ${JSON.stringify(at)} has`);
    expect(first.stderr).toMatch(words);
    const second = claim('100');
    await second.waitFor('cannot take a job');
    execFileSync('mount', ['-o', 'remount,size=3g', at]);
    await node.ploy.waitUntil('its end', () => job.completions.length > 0);
    second.child.kill('SIGTERM');
    await second.ended;
    expect(job.completions).toHaveLength(1);
  });

  it('P56: of locks and slots keeps the node from asking, and with room it asks again', async () => {
    const node = await makeClaimNode({ concurrency: 1 });
    const run = join(node.root, 'run');
    mountSmall(run, 'size=1m');
    const job = node.ploy.queueJob({ command: 'echo roomy' });
    const makeRoom = fillDisk(run);
    const end = await node.reeve('claim', '--window', '0');
    expect([end.status === 0, node.ploy.state.requests.length, job.status]).toEqual([false, 0, 'Queued']);
    expect(end.stderr).toMatch(/ENOSPC|no space left/);
    makeRoom();
    await expectNextJobRunsAfter(node, job);
  });
});

async function expectNextJobRunsAfter(node: ClaimNode, job: PloyJob): Promise<void> {
  expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
  expect(job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
  await expectNextJobRuns(node);
}
