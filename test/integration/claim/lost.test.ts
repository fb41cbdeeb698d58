// A claim that the server has granted and whose answer never came: what follows a job of ours is found and ended, and what begins a
// run is at least told of. Nothing else of the server's is touched.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { until } from '../../support/balanced.ts';
import { type ClaimNode, makeClaimNode } from '../../support/claim-node.ts';
import type { PloyJob } from '../../support/ploy/model.ts';

const historyOf = ({ history }: PloyJob): string[] => history.map(({ status }) => status);
const isInDoubt = ({ stateDir }: ClaimNode): boolean => existsSync(join(stateDir, 'jobs/.claim-in-doubt'));

/** Three jobs of one run, the first of which has ended well here. */
async function makeChain(node: ClaimNode): Promise<[PloyJob, PloyJob, PloyJob]> {
  const first = node.ploy.queueJob({ command: 'true' });
  const { id: runId, job_id: after } = first.payload;
  const second = node.ploy.queueJob({ command: 'true', runId, after });
  const third = node.ploy.queueJob({ command: 'true', runId, after: second.payload.job_id });
  expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
  expect([first.status, second.status, third.status]).toEqual(['Success', 'Queued', 'Created']);
  return [first, second, third];
}

/** Stopped while the server takes its time, so that its answer finds nobody; then killed. */
async function killWithAnswer(node: ClaimNode, job: PloyJob): Promise<void> {
  node.ploy.faults.add({ route: 'claim', kind: 'slow', ms: 2_000, times: 1 });
  const asked = node.ploy.requestsTo('claim').length;
  const { child } = node.start('claim', '--window', '0');
  const exited = new Promise((resolve) => child.once('exit', resolve));
  await until(() => node.ploy.requestsTo('claim').length > asked);
  child.kill('SIGSTOP');
  await until(() => job.status === 'Running');
  child.kill('SIGKILL');
  await exited;
}

it('R30 ends a job that was lost with a killed claim, where it follows one of ours', async () => {
  const node = await makeClaimNode();
  const [, second, third] = await makeChain(node);
  await killWithAnswer(node, second);
  const end = await node.reeve('claim', '--window', '0');
  expect(end.stderr).toContain('was killed while it asked for a job');
  expect(end.stderr).toContain(`job ${second.payload.job_id} is lost`);
  expect(second.completions).toMatchObject([
    { status: 'Error', exit_code: -1, stats: { error: expect.stringContaining('its claim never came') } },
  ]);
  expect([historyOf(second).at(-1), historyOf(third)]).toEqual(['Error', ['Created', 'Cancelled']]);
  expect([node.openJobs(), isInDoubt(node)]).toEqual([[], false]);
  // Once: then there is no doubt any more.
  const asked = node.ploy.requestsTo('status').length;
  expect((await node.reeve('claim', '--window', '0')).stderr).toBe('');
  expect(node.ploy.requestsTo('status')).toHaveLength(asked);
  expect(node.ploy.state.violations).toEqual([]);
});

it('R30 tells of a job that begins a run, of which it cannot know, and ends no other one', async () => {
  const node = await makeClaimNode();
  const [, waiting] = await makeChain(node);
  node.ploy.setStatus(waiting.payload.job_id, 'Created');
  const lost = node.ploy.queueJob();
  await killWithAnswer(node, lost);
  expect((await node.reeve('claim', '--window', '0')).stderr).toContain('the server waits for that job');
  expect([lost.status, waiting.status]).toEqual(['Running', 'Created']);
  expect(node.ploy.requestsTo('status').at(-1)).toMatchObject({ status: 403 });
  expect(isInDoubt(node)).toBe(false);
});

it('R30 ends a job that was granted by an answer that broke, as soon as the server can be asked', async () => {
  const node = await makeClaimNode();
  const [, second] = await makeChain(node);
  // As a server that commits, and fails on the way to its answer.
  second.nodeId = 'node-1';
  node.ploy.setStatus(second.payload.job_id, 'Running');
  const remove = node.ploy.faults.add({ route: 'claim', kind: 'answer', status: 500 });
  expect((await node.reeve('claim', '--window', '0')).status).toBe(69);
  expect([second.status, isInDoubt(node)]).toEqual(['Running', true]);
  remove();
  node.ploy.faults.add({ route: 'status', kind: 'answer', status: 503, times: 1 });
  expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
  expect([second.status, isInDoubt(node)]).toEqual(['Running', true]);
  expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
  expect([second.status, isInDoubt(node)]).toEqual(['Error', false]);
});
