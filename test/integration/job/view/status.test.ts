// What `status` says of jobs.
import { expect, it } from 'vitest';
import { makeJobRecords } from '../../../support/job-records.ts';
import { makeMachine } from '../../../support/machine.ts';

it('tells how many jobs are open, the oldest, what the server does not know yet, and the last claim', async () => {
  const jobs = makeJobRecords();
  const empty = await jobs.reeve('status');
  expect([empty.status, empty.stdout]).toEqual([
    0,
    'jobs of node-1: 0 of 4 open; never claimed\nno concern has run yet\n',
  ]);
  await jobs.open('oldest');
  await jobs.open('undelivered', { completion: {} });
  await jobs.end('ended');
  await jobs.open('damaged');
  jobs.write('state/jobs/damaged/claim.json', '{');
  const endedAt = new Date(Date.now() - 120_000).toISOString();
  jobs.write('state/runs/claim.json', {
    ...{ version: 1, concern: 'claim', runId: 'r', pid: 1, outcome: 'done', exitCode: 0, durationMs: 5 },
    ...{ startedAt: endedAt, endedAt, lastEndedAt: endedAt, lastGoodAt: endedAt },
  });
  const shown = await jobs.reeve('status');
  expect(shown.stdout.split('\n').slice(0, 3)).toEqual([
    expect.stringMatching(
      /^jobs of node-1: 3 of 4 open, the oldest for 1h \(oldest\); last claim run 2m.* ago: done$/,
    ),
    'jobs that the server does not know to have ended: undelivered',
    'jobs whose claim is damaged: damaged',
  ]);
  const { jobs: data } = JSON.parse((await jobs.reeve('status', '--json')).stdout);
  expect(data).toEqual({
    ...{ node: 'node-1', open: 3, concurrency: 4, undelivered: ['undelivered'], damaged: ['damaged'] },
    oldest: { job: 'oldest', run: 'run-1', claimedAt: expect.any(String), ageMs: expect.any(Number) },
    lastClaim: { startedAt: endedAt, endedAt, outcome: 'done', exitCode: 0 },
  });
});

it('says nothing of jobs where the configuration has none', async () => {
  const status = await makeMachine().reeve('status', '--json');
  expect(JSON.parse(status.stdout)).not.toHaveProperty('jobs');
});
