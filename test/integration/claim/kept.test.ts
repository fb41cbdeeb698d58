// Answers that lie on disk: their jobs become open jobs or their ends are told, however long that takes, and none is ended for it.
import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { type ClaimNode, makeClaimNode } from '../../support/claim-node.ts';
import type { PloyJob } from '../../support/ploy/model.ts';

/** As somebody who has stopped while he counted slots. */
async function holdSlots(node: ClaimNode): Promise<() => void> {
  const locks = join(node.root, 'run/locks');
  mkdirSync(locks, { recursive: true });
  const words = ['-x', join(locks, 'slots.lock'), 'sh', '-c', 'echo held; exec sleep 300'];
  const child = spawn('flock', ['--no-fork', ...words], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await new Promise((resolve) => child.stdout.once('data', resolve));
  return () => void child.kill('SIGKILL');
}

const keptAnswers = (node: ClaimNode): string[] =>
  readdirSync(join(node.stateDir, 'jobs')).filter((name) => name.startsWith('.answer-'));

it('P56 runs a job that could not be written down while somebody had the slots, at the next turn', async () => {
  const node = await makeClaimNode({ concurrency: 1 });
  const letGo = await holdSlots(node);
  const job = node.ploy.queueJob({ command: 'echo kept' });
  const program = node.start('claim', '--window', '100');
  await program.waitFor('slots is held');
  expect([job.status, keptAnswers(node).length]).toEqual(['Running', 1]);
  letGo();
  await node.ploy.waitUntil('its end', () => job.completions.length > 0);
  program.child.kill('SIGTERM');
  await program.ended;
  expect(job.completions).toMatchObject([{ status: 'Success' }]);
  expect(keptAnswers(node)).toEqual([]);
});

it('P56 says that a job could not be written down, and leaves its answer to the next claim', async () => {
  const node = await makeClaimNode({ concurrency: 1 });
  const letGo = await holdSlots(node);
  const job = node.ploy.queueJob({ command: 'echo kept' });
  const end = await node.reeve('claim', '--window', '0');
  expect([end.status, job.status, keptAnswers(node).length]).toEqual([1, 'Running', 1]);
  expect(node.ploy.requestsTo('complete')).toEqual([]);
  letGo();
  expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
  expect(job.completions).toMatchObject([{ status: 'Success' }]);
});

/** As after a server was restored: it has forgotten the end of a job of ours. */
async function endAndForget(node: ClaimNode): Promise<PloyJob> {
  const job = node.ploy.queueJob();
  expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
  expect(job.status).toBe('Success');
  job.completions.length = 0;
  node.ploy.setStatus(job.payload.job_id, 'Queued');
  return job;
}

it('P51 tells the end of a job that is given once more until the server has taken it', async () => {
  const node = await makeClaimNode();
  const job = await endAndForget(node);
  const heal = node.ploy.faults.add({ route: 'complete', kind: 'answer', status: 503 });
  await node.reeve('claim', '--window', '0');
  expect([job.status, keptAnswers(node).length, node.openJobs()]).toEqual(['Running', 1, []]);
  heal();
  expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
  expect([job.status, job.completions.length, keptAnswers(node)]).toEqual(['Success', 1, []]);
  expect(await node.containers()).toEqual([]);
});

it('drops an answer whose claimer was killed as soon as the job was open', async () => {
  const node = await makeClaimNode();
  const job = node.ploy.queueJob();
  expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
  const text = JSON.stringify({ claimedAt: new Date().toISOString(), payload: job.payload });
  writeFileSync(join(node.stateDir, 'jobs/.answer-run-1.json'), text);
  expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
  expect([job.status, job.completions.length, keptAnswers(node)]).toEqual(['Success', 1, []]);
});

it('P59 ends a job whose claim is larger than what can be read again, and says so', async () => {
  const node = await makeClaimNode({ concurrency: 1 });
  const job = node.ploy.queueJob();
  job.nodeId = 'node-1';
  node.ploy.setStatus(job.payload.job_id, 'Running');
  // Small on its way, and not as we would write it.
  const payload = `{"id":"${job.payload.id}","job_id":"${job.payload.job_id}","spec":[${'1e20,'.repeat(900_000)}1]}`;
  mkdirSync(join(node.stateDir, 'jobs'), { recursive: true });
  const text = `{"claimedAt":"${new Date().toISOString()}","payload":${payload}}`;
  writeFileSync(join(node.stateDir, 'jobs/.answer-run-1.json'), text);
  expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
  expect(job.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
  expect(job.completions[0]?.stats?.error).toContain('larger than');
  expect(readdirSync(join(node.stateDir, 'jobs'))).toEqual([]);
});
