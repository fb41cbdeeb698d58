// What the end of a job leaves in the engine, wherever the pass that tells it is killed.
import { existsSync, mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type ClaimNode, makeClaimNode } from '../../support/claim-node.ts';
import { engineSocket } from '../../support/engine.ts';
import { killAtPoint, startEngineProxy } from '../../support/engine-proxy.ts';
import { askDocker } from '../../support/node.ts';
import { makeKsuid } from '../../support/ploy/jobs.ts';
import type { PloyJob } from '../../support/ploy/model.ts';
import { attemptAtPoints } from '../../support/points.ts';

/** As the original leaves a job that has just ended. */
async function endForeign(node: ClaimNode): Promise<PloyJob> {
  const job = node.ploy.queueJob();
  job.nodeId = 'node-1';
  const { id: runId, job_id: jobId } = job.payload;
  node.ploy.setStatus(jobId, 'Running');
  await askDocker(node.socket, ['wait', await node.runForeign({ runId, jobId }, 'exit 1')]);
  return job;
}

async function expectOneEnd(node: ClaimNode, job: PloyJob): Promise<void> {
  for (let passes = 0; passes < 2; passes += 1) {
    expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
  }
  expect(job.completions).toMatchObject([{ status: 'Fail', exit_code: 1 }]);
  expect([node.openJobs(), await node.containers()]).toEqual([[], []]);
  expect(node.endedJobs()).toContain(job.payload.job_id);
}

it('P38: a pass that is killed at any request to the engine leaves no container, and one end', async () => {
  const proxy = await startEngineProxy(engineSocket());
  const node = await makeClaimNode({ socket: proxy.socket });
  const { taken, count } = await attemptAtPoints(async (point) => {
    const job = await endForeign(node);
    const seen = await killAtPoint(node.start('claim', '--window', '0'), proxy, point);
    await expectOneEnd(node, job);
    return seen;
  });
  expect(count).toBeGreaterThanOrEqual(6);
  console.log(`figure: killed at ${taken} of ${count} requests and answers of the engine`);
});

it.each([false, true])(
  'P38, P40: a pass that is killed while it tells an end leaves no container, and one end: taken: %s',
  async (committed) => {
    const node = await makeClaimNode();
    const job = await endForeign(node);
    const heal = node.ploy.faults.add({
      route: 'complete',
      kind: 'silence',
      committed,
      jobId: job.payload.job_id,
    });
    const program = node.start('claim', '--window', '0');
    await node.ploy.waitUntil('the end', () => node.ploy.requestsTo('complete').length > 0);
    program.child.kill('SIGKILL');
    await program.ended;
    heal();
    await expectOneEnd(node, job);
  },
);

it('remembers an ended job, however old, as long as its container is there', async () => {
  const proxy = await startEngineProxy(engineSocket());
  const node = await makeClaimNode({ socket: proxy.socket });
  const jobId = makeKsuid('Old');
  const records = join(node.stateDir, 'jobs-ended', jobId);
  mkdirSync(records, { recursive: true });
  writeFileSync(join(records, 'claim.json'), '{}');
  utimesSync(records, 0, 0);
  const id = await node.runForeign({ runId: 'run', jobId }, 'true');
  await askDocker(node.socket, ['wait', id]);
  const passes: unknown[] = [];
  const pass = async (): Promise<void> => {
    const { status } = await node.reeve('claim', '--window', '0');
    const filter = ['--filter', `label=com.ploy.job_id=${jobId}`];
    const left = await askDocker(node.socket, ['ps', '-aq', '--no-trunc', ...filter]);
    passes.push([status, existsSync(records), left.trim()]);
  };
  proxy.answerInstead = (line) =>
    line.startsWith('DELETE ') ? { status: 500, body: { message: 'device busy' } } : undefined;
  await pass();
  proxy.answerInstead = () => undefined;
  await pass();
  await pass();
  expect(passes).toEqual([
    [1, true, id],
    [0, true, ''],
    [0, false, ''],
  ]);
});
