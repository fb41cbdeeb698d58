// A clock that is set while a job runs: how long the engine has been away is measured by another one.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { engineSocket } from '../../support/engine.ts';
import { startEngineProxy } from '../../support/engine-proxy.ts';
import { fakeClockFrom } from '../../support/faked-clock.ts';
import { makeJobRuns } from '../../support/job-runs.ts';
import { startProcess } from '../../support/programs.ts';

const main = join(import.meta.dirname, '../../../src/commands/main.ts');

it('R59: a clock that is set two minutes ahead while the engine is away for a moment ends no run', async () => {
  const proxy = await startEngineProxy(engineSocket());
  const runs = await makeJobRuns(proxy.socket);
  const job = runs.claim({ command: 'echo begun' });
  const clock = runs.write('clock', '+0\n');
  let refused = 0;
  proxy.beforeRequest = (line) => {
    const isAsked = /^(POST \/containers\/[^/]+\/wait|GET \/containers\/[0-9a-f]+\/(json|logs))$/.test(line);
    if (!isAsked || !proxy.lines.some((one) => one.endsWith('/start')) || refused >= 12) return;
    refused += 1;
    if (refused === 6) writeFileSync(clock, '+120\n');
    throw new Error('it is restarted');
  };
  const end = await startProcess(process.execPath, [main, 'job', 'run', job.payload.job_id], {
    ...runs.env,
    REEVE_CONFIG: join(runs.root, 'etc/reeve.yaml'),
    REEVE_STATE: runs.stateDir,
    REEVE_RUN: join(runs.root, 'run'),
    REEVE_CACHE: join(runs.root, 'cache'),
    ...fakeClockFrom(clock),
  }).ended;
  expect([end.status, refused]).toEqual([0, 12]);
  expect(job.completions).toMatchObject([{ status: 'Success' }]);
  // It was set indeed.
  expect(Date.parse(String(runs.record(job, 'completion.json')['decidedAt']))).toBeGreaterThan(
    Date.now() + 60_000,
  );
});
