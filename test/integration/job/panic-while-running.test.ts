// A bug of ours while the container of a job runs, with the records, the engine and the server as they are in `job run`.
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../../src/lib/config/load.ts';
import { resolvePaths } from '../../../src/lib/config/paths.ts';
import { openControlPlane } from '../../../src/lib/control-plane/client.ts';
import { openEngine } from '../../../src/lib/docker/client.ts';
import { endByPanic } from '../../../src/lib/job/panic.ts';
import { createSession, type JobSession } from '../../../src/lib/job/session.ts';
import { watchCancel } from '../../../src/lib/job/watch-cancel.ts';
import { findJob, readJob } from '../../../src/lib/jobs/book.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { type JobRuns, makeJobRuns } from '../../support/job-runs.ts';
import { inspectAll } from '../../support/node.ts';
import type { PloyJob } from '../../support/ploy/model.ts';

/** Of a job whose run was killed while its container ran. */
async function openSession(runs: JobRuns, job: PloyJob): Promise<JobSession> {
  const paths = resolvePaths(
    { config: join(runs.root, 'etc/reeve.yaml') },
    { REEVE_STATE: runs.stateDir, REEVE_RUN: join(runs.root, 'run'), REEVE_CACHE: join(runs.root, 'cache') },
  );
  const config = await loadConfig(paths, {});
  const { jobs } = config;
  const ctx = {
    ...{ runId: 'test', command: 'job run', interactive: false, paths, config },
    ...{ clock: systemClock, log: silentLog, signal: new AbortController().signal },
    overrides: { PLOY_NODE_BEARER_TOKEN_PATH: runs.files.token },
  };
  const place = await findJob(ctx, job.payload.job_id);
  if (jobs === undefined || place === undefined) throw new Error('there is no such job');
  const records = await readJob(ctx, place);
  if (records.claim === undefined) throw new Error('there is no claim');
  const controlPlane = openControlPlane(ctx, jobs);
  const engine = openEngine({ socket: runs.socket });
  onTestFinished(() => {
    controlPlane.close();
    engine.close();
  });
  const understood = { kind: 'adopted' } as const;
  return createSession({
    ...{ ctx, jobs, controlPlane, engine, understood },
    ...{ place: records, claim: records.claim },
  });
}

it.each([
  ['P51: an error', undefined, { status: 'Error', exit_code: -1 }],
  ['P58: cancelled, where somebody wanted that,', 'enough', { status: 'Cancelled' }],
])('%s is its end, and its container is killed', async (_, reason, body) => {
  const runs = await makeJobRuns();
  const job = runs.claim({ command: 'trap "" TERM; echo begun; while :; do sleep 1; done' });
  const program = runs.start(['job', 'run', job.payload.job_id]);
  await runs.ploy.waitUntil('its first line', () => job.chunks.size > 0);
  program.child.kill('SIGKILL');
  await program.ended;
  const session = await openSession(runs, job);
  if (reason !== undefined) {
    session.change({ cancelled: { at: new Date().toISOString(), reason, by: 'operator' } });
  }
  const watch = watchCancel(session);
  onTestFinished(() => watch.stop());
  await endByPanic({ session, watch, container: 'running' }, new TypeError('nobody has foreseen this'));
  expect(job.completions).toMatchObject([body]);
  expect(job.completions[0]?.stats?.error).toBe('the node failed: nobody has foreseen this');
  const containers = await inspectAll(runs.socket, await runs.containers(job));
  expect(containers.map(({ state }) => state)).toEqual(['exited']);
  expect((await runs.reeve('job', 'run', job.payload.job_id)).status).toBe(0);
  expect([runs.isClosed(job), await runs.containers(job)]).toEqual([true, []]);
});
