// Answers to a claim that give a job and cannot be read: the server has it Running by then.
import { expect, it } from 'vitest';
import { makeClaimNode } from '../../support/claim-node.ts';

it.each([
  ['is cut', (payload: object) => JSON.stringify(payload).slice(0, -20)],
  ['has words around it', (payload: object) => `<html>${JSON.stringify(payload, null, 2)}</html>`],
])('P59 ends the job of an answer that %s, as far as its ids can be found', async (_, spoil) => {
  const node = await makeClaimNode();
  const job = node.ploy.queueJob();
  const { id, job_id } = job.payload;
  job.nodeId = 'node-1';
  node.ploy.setStatus(job_id, 'Running');
  const text = spoil({ id, job_id, spec: { steps: [{ image: 'x', command: 'y' }] } });
  node.ploy.faults.add({ route: 'claim', kind: 'answer', status: 200, text, times: 1 });
  const end = await node.reeve('claim', '--window', '0');
  expect(job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
  expect(job.completions[0]?.stats?.error).toContain('the answer is no JSON');
  expect(end.stderr).toContain(`job ${job_id} is ended`);
  expect([end.status, node.openJobs()]).toEqual([69, []]);
});

it('P59 says that a job hangs on the server where no id can be found', async () => {
  const node = await makeClaimNode();
  node.ploy.faults.add({ route: 'claim', kind: 'answer', status: 200, text: 'moved', times: 1 });
  const end = await node.reeve('claim', '--window', '0');
  expect([end.status, node.ploy.requestsTo('complete')]).toEqual([69, []]);
  expect(end.stderr).toContain('if it gave a job, that job hangs on the server');
});
