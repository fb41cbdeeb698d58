// `job run` killed at each of its requests and at any moment between: the next one goes on, and nothing happens twice.
import { describe, expect, it } from 'vitest';
import { engineSocket } from '../../support/engine.ts';
import { killAtPoint, startEngineProxy } from '../../support/engine-proxy.ts';
import { type JobRuns, makeJobRuns } from '../../support/job-runs.ts';
import { readLines } from '../../support/ploy/jobs.ts';
import type { PloyJob } from '../../support/ploy/model.ts';
import { attemptAtPoints, choosePoints } from '../../support/points.ts';

const idOf = (job: PloyJob): string => job.payload.job_id;

/** Says how often it was started; a second time would be a second line. */
const command = 'echo start >> /out/starts; echo begun; cat /out/starts; echo new > /workspace/new';

async function expectOneEnd(runs: JobRuns, job: PloyJob): Promise<void> {
  let status: number | null = 0;
  for (let tries = 0; tries < 10 && !runs.isClosed(job); tries += 1) {
    ({ status } = await runs.reeve('job', 'run', idOf(job)));
  }
  expect([status, runs.isClosed(job)]).toEqual([0, true]);
  expect(job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
  expect(readLines(job)).toEqual(['begun', 'start']);
  const patches = new Set(job.diffs.map(({ patch }) => patch));
  expect([...patches]).toEqual([expect.stringContaining('+new')]);
  expect(runs.ploy.state.violations).toEqual([]);
}

describe('P34, P63, R59: job run that is killed', () => {
  it('at each request to the engine and each answer of it runs the job once all the same', {
    timeout: 570_000,
  }, async () => {
    const proxy = await startEngineProxy(engineSocket());
    const runs = await makeJobRuns(proxy.socket);
    const { taken, count } = await attemptAtPoints(async (point) => {
      const job = runs.claim({ command });
      const seen = await killAtPoint(runs.start(['job', 'run', idOf(job)]), proxy, point);
      await expectOneEnd(runs, job);
      expect(await runs.containers(job), `killed at ${point}`).toHaveLength(0);
      return seen;
    });
    expect(count).toBeGreaterThanOrEqual(10);
    console.log(`figure: killed at ${taken} of ${count} requests and answers of the engine`);
  });

  it.each(['logs', 'complete', 'status'] as const)(
    'before and after the server has done %s runs the job once all the same',
    async (route) => {
      const runs = await makeJobRuns();
      for (const committed of [false, true]) {
        const job = runs.claim({ command });
        const heal = runs.ploy.faults.add({
          route,
          kind: 'silence',
          committed,
          jobId: route === 'logs' ? undefined : idOf(job),
        } as never);
        const program = runs.start(['job', 'run', idOf(job)]);
        const seen = runs.ploy.requestsTo(route).length;
        await Promise.race([
          program.ended,
          runs.ploy.waitUntil(route, () => runs.ploy.requestsTo(route).length > seen, 5000).catch(() => {}),
        ]);
        program.child.kill('SIGKILL');
        await program.ended;
        heal();
        await expectOneEnd(runs, job);
      }
    },
  );

  it('at any moment runs the job once all the same', { timeout: 570_000 }, async () => {
    const runs = await makeJobRuns();
    for (const point of choosePoints(33)) {
      const job = runs.claim({ command });
      const program = runs.start(['job', 'run', idOf(job)]);
      const timer = setTimeout(() => program.child.kill('SIGKILL'), point * 30);
      await program.ended;
      clearTimeout(timer);
      await expectOneEnd(runs, job);
    }
  });
});
