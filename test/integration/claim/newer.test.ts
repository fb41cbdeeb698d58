// Records that a newer reeve has written, and ends that were decided before a record was damaged: the other jobs go on, and no end
// is told that is not true.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { makeClaimNode } from '../../support/claim-node.ts';
import type { PloyJob } from '../../support/ploy/model.ts';

const idOf = (job: PloyJob): string => job.payload.job_id;

it('R32: a pass goes on with the others where one job has records of a newer version', async () => {
  const node = await makeClaimNode();
  const [newer, other] = [node.ploy.queueJob(), node.ploy.queueJob({ command: 'echo other' })];
  newer.nodeId = 'node-1';
  node.ploy.setStatus(idOf(newer), 'Running');
  const place = join(node.stateDir, 'jobs', idOf(newer));
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, 'claim.json'), '{"version":99}');
  const end = await node.reeve('claim', '--window', '0');
  expect(end.status).toBe(0);
  expect(newer.completions).toMatchObject([{ status: 'Error', exit_code: -1 }]);
  expect(other.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
  expect(end.stderr).toContain('it is version 99');
  // What it said is kept for the newer one.
  const kept = readdirSync(join(node.stateDir, 'jobs-ended', idOf(newer)));
  const setAside = kept.find((name) => name.startsWith('claim.json.corrupt-')) ?? '';
  expect(readFileSync(join(node.stateDir, 'jobs-ended', idOf(newer), setAside), 'utf8')).toBe(
    '{"version":99}',
  );
});

it('R30 R32: a job whose claim is lost and whose end is decided is told that end', async () => {
  const node = await makeClaimNode();
  const job = node.ploy.queueJob();
  job.nodeId = 'node-1';
  node.ploy.setStatus(idOf(job), 'Running');
  const place = join(node.stateDir, 'jobs', idOf(job));
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, 'claim.json'), '');
  const body = { status: 'Success', exit_code: 0 };
  const completion = { version: 1, body, decidedAt: new Date().toISOString(), attempts: 4 };
  writeFileSync(join(place, 'completion.json'), JSON.stringify(completion));
  expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
  expect([job.completions, node.openJobs()]).toEqual([[body], []]);
});

it('R32 R37: a job that is given once more is not run again where its end is of a newer version', async () => {
  const node = await makeClaimNode();
  const job = node.ploy.queueJob({ command: 'echo x >> /share/starts' });
  expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
  const ended = join(node.stateDir, 'jobs-ended', idOf(job));
  for (const name of ['completion.json', 'completion.json.previous']) {
    writeFileSync(join(ended, name), '{"version":99}');
  }
  node.ploy.setStatus(idOf(job), 'Queued');
  const end = await node.reeve('claim', '--window', '0');
  expect(end.status).toBe(0);
  expect(end.stderr).toContain('once more: it is not run again');
  expect(end.stderr).not.toContain('cannot keep the job');
  expect(job.completions[1]?.stats?.error).toBe('it had ended here before');
  const starts = join(node.root, 'work/runs', job.payload.id, 'artifacts/shared/starts');
  expect(readFileSync(starts, 'utf8')).toBe('x\n');
});

it('P58 R32: a wish to end a job in words of a newer version keeps the job from nothing', async () => {
  const node = await makeClaimNode();
  const job = node.ploy.queueJob({ command: 'echo begun' });
  job.nodeId = 'node-1';
  node.ploy.setStatus(idOf(job), 'Running');
  const place = join(node.stateDir, 'jobs', idOf(job));
  mkdirSync(place, { recursive: true });
  const about = { source: 'claim', claimedAt: new Date().toISOString(), runId: job.payload.id };
  const claim = { version: 1, ...about, jobId: idOf(job), payload: job.payload };
  writeFileSync(join(place, 'claim.json'), JSON.stringify(claim));
  writeFileSync(join(place, 'cancel.json'), '{"version":99}');
  const end = await node.reeve('job', 'run', idOf(job));
  expect([end.status, end.stderr.match(/it is version 99/g)?.length]).toEqual([0, 1]);
  expect(job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
});
