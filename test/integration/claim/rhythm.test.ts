// When a claim asks: the instants of its requests, as the server sees them.
import { expect, it } from 'vitest';
import { type ClaimNode, makeClaimNode } from '../../support/claim-node.ts';
import { type Standstill, watchStandstill } from '../../support/standstill.ts';

/** Between requests, in milliseconds, and without what the machine stood still. */
type Gap = { ms: number; ownMs: number };

function gapsOf(node: ClaimNode, still: Standstill): Gap[] {
  const times = node.ploy.requestsTo('claim').map(({ atMs }) => atMs);
  return times.slice(1).map((atMs, index) => {
    const before = times[index] ?? 0;
    return { ms: atMs - before, ownMs: atMs - before - still.within(before, atMs) };
  });
}

const requests = (node: ClaimNode): number => node.ploy.requestsTo('claim').length;

/** What it costs to ask, on a machine that does much else. */
const slackMs = 1_500;

function expectGrowing(gaps: readonly Gap[]): void {
  for (const [index, { ms, ownMs }] of gaps.entries()) {
    const wantedMs = Math.min(5_000, 250 * 2 ** index);
    expect(ms).toBeGreaterThanOrEqual(wantedMs * 0.5);
    expect(ownMs).toBeLessThanOrEqual(wantedMs * 1.5 + slackMs);
  }
}

it.each([
  ['that finds nothing', () => {}],
  [
    'that fails',
    ({ ploy }: ClaimNode) => void ploy.faults.add({ route: 'claim', kind: 'answer', status: 500 }),
  ],
])('P55 waits longer after each try %s', async (_, prepare) => {
  const node = await makeClaimNode();
  prepare(node);
  const still = watchStandstill();
  const program = node.start('claim', '--window', '60');
  await node.ploy.waitUntil('five requests', () => requests(node) >= 5);
  program.child.kill('SIGTERM');
  await program.ended;
  expectGrowing(gapsOf(node, still).slice(0, 4));
});

it('P55 waits longer after each job that is given once more and not run again', async () => {
  const node = await makeClaimNode();
  const job = node.ploy.queueJob();
  const { job_id: jobId } = job.payload;
  expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
  const [before, ended] = [requests(node), node.ploy.requestsTo('complete').length];
  node.ploy.setStatus(jobId, 'Queued');
  const still = watchStandstill();
  const program = node.start('claim', '--window', '60');
  for (let times = 1; times <= 4; times += 1) {
    await node.ploy.waitUntil('its end', () => node.ploy.requestsTo('complete').length >= ended + times);
    await node.ploy.waitUntil('its end taken', () => job.status === 'Success');
    node.ploy.setStatus(jobId, 'Queued');
  }
  await node.ploy.waitUntil('five requests', () => requests(node) >= before + 5);
  program.child.kill('SIGTERM');
  await program.ended;
  expectGrowing(gapsOf(node, still).slice(before, before + 4));
  expect(await node.containers()).toEqual([]);
});

it('P55 asks at once after a claim, and begins anew with its waits', async () => {
  const node = await makeClaimNode();
  const still = watchStandstill();
  const program = node.start('claim', '--window', '60');
  await node.ploy.waitUntil('five requests', () => requests(node) >= 5);
  const job = node.ploy.queueJob();
  await node.ploy.waitUntil('three more', () => requests(node) >= 8);
  program.child.kill('SIGTERM');
  await program.ended;
  expect(node.ploy.requestsTo('claim')[5]?.given).toBe(job.payload.job_id);
  const [, , , , last, atOnce, first] = gapsOf(node, still);
  expect(last?.ms).toBeGreaterThanOrEqual(2_000);
  expect(atOnce?.ownMs).toBeLessThan(slackMs);
  expect(first?.ms).toBeGreaterThanOrEqual(125);
  expect(first?.ownMs).toBeLessThan(375 + slackMs);
});

it('P56 has its slot free again after a try that found nothing or failed', async () => {
  const node = await makeClaimNode({ concurrency: 1 });
  node.ploy.faults.add({ route: 'claim', kind: 'answer', status: 500, skip: 1, times: 1 });
  const program = node.start('claim', '--window', '60');
  await node.ploy.waitUntil('204 and 500', () => requests(node) >= 2);
  const job = node.ploy.queueJob();
  await node.ploy.waitUntil('its end', () => job.completions.length > 0);
  program.child.kill('SIGTERM');
  await program.ended;
  expect(job.completions).toMatchObject([{ status: 'Success' }]);
});
