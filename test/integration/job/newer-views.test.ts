// Whoever only looks at jobs, beside records that a newer reeve has written: each says which, and goes on with the others.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type JobRecordsMachine, makeJobRecords } from '../../support/job-records.ts';
import { makeJobsMachine } from '../../support/jobs-machine.ts';

const newer = { version: 99 };
const words = 'it is version 99, this reeve knows versions up to 1';

/** Of one job each record is of a newer version, and one is as it should be. */
async function aMachine(): Promise<JobRecordsMachine> {
  const jobs = makeJobRecords();
  for (const name of ['claim', 'progress', 'completion', 'cancel']) {
    await jobs.open(`job-${name}`, { progress: {} });
    jobs.write(`state/jobs/job-${name}/${name}.json`, newer);
    const previous = join(jobs.stateDir, `jobs/job-${name}/${name}.json.previous`);
    expect(existsSync(previous)).toBe(false);
  }
  await jobs.open('whole', { progress: {} });
  return jobs;
}

const setAside = ({ stateDir }: JobRecordsMachine): string[] =>
  readdirSync(join(stateDir, 'jobs'), { recursive: true })
    .map(String)
    .filter((name) => name.includes('.corrupt-'));

it('R32: job list names them and has the others', async () => {
  const jobs = await aMachine();
  const end = await jobs.reeve('job', 'list', '--json');
  expect(end.status).toBe(1);
  const listed = JSON.parse(end.stdout) as {
    jobs: { id: string }[];
    unreadable: { key: string; message: string }[];
  };
  expect(listed.jobs.map(({ id }) => id).sort()).toEqual(['job-cancel', 'whole']);
  expect(listed.unreadable.map(({ key }) => key).sort()).toEqual([
    'job-claim',
    'job-completion',
    'job-progress',
  ]);
  for (const { message } of listed.unreadable) expect(message).toContain(words);
  expect(setAside(jobs)).toEqual([]);
});

it('R32: job show says so of the one that is asked for', async () => {
  const jobs = await aMachine();
  const end = await jobs.reeve('job', 'show', 'job-progress');
  expect([end.status, end.stderr.includes(words)]).toEqual([65, true]);
  expect((await jobs.reeve('job', 'show', 'whole')).status).toBe(0);
  const cancelled = await jobs.reeve('job', 'show', 'job-cancel');
  expect([cancelled.status, cancelled.stdout]).toEqual([0, expect.stringContaining('cancel is damaged')]);
  expect(setAside(jobs)).toEqual([]);
});

it('R32: status counts them, names them and goes on', async () => {
  const jobs = await aMachine();
  const end = await jobs.reeve('status', '--json');
  expect(end.status).toBe(0);
  const { jobs: view } = JSON.parse(end.stdout);
  expect(view).toMatchObject({ open: 5, damaged: ['job-claim', 'job-completion', 'job-progress'] });
  expect(end.stderr.split(words)).toHaveLength(4);
  expect(setAside(jobs)).toEqual([]);
});

it('R32 P66: heartbeat goes out', async () => {
  const machine = await makeJobsMachine();
  machine.write('state/jobs/job-1/claim.json', newer);
  const end = await machine.reeve('heartbeat');
  expect([end.status, machine.ploy.requestsTo('heartbeat').map(({ status }) => status)]).toEqual([0, [204]]);
});
