// A job that is cancelled before its container runs: whatever it is waiting for then, nobody waits for that.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type JobRuns, makeJobRuns } from '../../support/job-runs.ts';
import type { PloyJob } from '../../support/ploy/model.ts';
import { watchStandstill } from '../../support/standstill.ts';

const idOf = (job: PloyJob): string => job.payload.job_id;

/** The 4 s of the issue, and what a start and an end cost on a busy machine. */
const soonMs = 9_000;

async function endMs(runs: JobRuns, job: PloyJob, cancel: () => Promise<void>): Promise<number> {
  const still = watchStandstill();
  const program = runs.start(['job', 'run', idOf(job)]);
  await cancel();
  const cancelledAtMs = Date.now();
  expect((await program.ended).status).toBe(0);
  const endedAtMs = Date.now();
  return endedAtMs - cancelledAtMs - still.within(cancelledAtMs, endedAtMs);
}

describe('P60: a cancellation is heard', () => {
  it('while the snapshot does not come', async () => {
    const runs = await makeJobRuns();
    runs.ploy.faults.add({ route: 'snapshot', kind: 'silence' });
    const job = runs.claim();
    const tookMs = await endMs(runs, job, async () => {
      await runs.ploy.waitUntil('the snapshot', () => runs.ploy.requestsTo('snapshot').length > 0);
      await runs.reeve('job', 'cancel', idOf(job), '--yes');
    });
    expect(tookMs).toBeLessThan(soonMs);
    expect(job.completions).toMatchObject([{ status: 'Cancelled' }]);
    expect([runs.isClosed(job), await runs.containers(job)]).toEqual([true, []]);
  });

  it('while a registry does not answer', async () => {
    const registry = await startSilentRegistry();
    const runs = await makeJobRuns();
    const job = runs.claim({ image: `127.0.0.1:${registry.port}/team/app:v1` });
    const tookMs = await endMs(runs, job, async () => {
      await registry.asked;
      await runs.ploy.waitUntil('the workspace', () => runs.ploy.requestsTo('snapshot').length > 0);
      // Of a job that has ended it would be refused, which is told as well.
      await runs.ploy.waitUntil('its image', () => job.images.length > 0);
      runs.ploy.cancelJob(idOf(job));
    });
    expect(tookMs).toBeLessThan(soonMs);
    expect([job.status, runs.isClosed(job), job.events]).toMatchObject([
      'Cancelled',
      true,
      [{ level: 'warn' }],
    ]);
  });
});

/** Says that it is one, and nothing about any image. */
async function startSilentRegistry(): Promise<{ port: number; asked: Promise<void> }> {
  let tell = (): void => {};
  const asked = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const server = createServer((request, response) => {
    if (request.url === '/v2/') response.end('{}');
    else tell();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, asked };
}
