import { expect, it } from 'vitest';
import { readJobs } from '../../../../src/lib/job/view/gather.ts';
import { closeJob, openJob } from '../../../../src/lib/jobs/book.ts';
import { systemClock } from '../../../../src/lib/time.ts';
import { makeTempDir } from '../../../support/temp.ts';

it('jobs that are closed while they are listed are in the list once, and whole', async () => {
  const stateDir = makeTempDir();
  const warnings: string[] = [];
  const log = { warning: (message: string) => void warnings.push(message) };
  const paths = { stateDir, locksDir: `${stateDir}/locks` };
  const ctx = { paths, clock: systemClock, log } as unknown as Parameters<typeof readJobs>[0];
  const ids = Array.from({ length: 60 }, (_, n) => `job-${String(n).padStart(2, '0')}`);
  for (const jobId of ids) {
    await openJob(ctx, { source: 'claim', claimedAt: new Date().toISOString(), runId: 'run-1', jobId });
  }
  let isClosing = true;
  const close = async (): Promise<void> => {
    for (const id of ids) await closeJob(ctx, id);
    isClosing = false;
  };
  const closing = close();
  for (let isLast = false; !isLast; ) {
    isLast = !isClosing;
    const { jobs, unreadable } = await readJobs(ctx, { endedSinceMs: 0 });
    expect(unreadable).toEqual([]);
    expect(jobs.map(({ claim }) => claim?.jobId).sort()).toEqual(ids);
  }
  await closing;
  expect(warnings).toEqual([]);
});
