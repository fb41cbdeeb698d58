// `job cancel`: a record that a job's runner looks at, written once and only for jobs that go on.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { hourMs, makeJobRecords } from '../../../support/job-records.ts';

describe('job cancel', () => {
  it('asks for the end of a job once: the first reason stays', async () => {
    const jobs = makeJobRecords();
    await jobs.open('job-1', { progress: { containerId: 'f'.repeat(64) } });
    const unasked = await jobs.reeve('job', 'cancel', 'job-1');
    expect([unasked.status, unasked.stderr]).toEqual([64, expect.stringContaining('say --yes')]);
    expect(existsSync(join(jobs.stateDir, 'jobs/job-1/cancel.json'))).toBe(false);
    const first = await jobs.reeve('job', 'cancel', 'job-1', '--yes', '--reason', 'wrong\nbranch');
    expect([first.status, first.stdout]).toEqual([
      0,
      'job job-1 is asked to end: nobody is at it now: the next claim ends it\n',
    ]);
    const second = await jobs.reeve('job', 'cancel', 'job-1', '--yes', '--json');
    expect(JSON.parse(second.stdout)).toMatchObject({
      ...{ outcome: 'nothing-to-do', job: 'job-1', held: false },
      cancel: { reason: 'wrong branch', by: 'operator' },
    });
    expect(jobs.json('state/jobs/job-1/cancel.json')).toMatchObject({ version: 1, reason: 'wrong branch' });
    expect((await jobs.reeve('job', 'show', 'job-1')).stdout).toMatch(
      /cancelled .* by the operator: wrong branch/,
    );
  });

  it('says within how long the end comes while a process is at the job', async () => {
    const jobs = makeJobRecords();
    await jobs.open('job-1', { progress: { containerId: 'f'.repeat(64) } });
    const holder = jobs.start(['lock', 'job@job-1', '--', 'bash', '-c', 'echo held; exec sleep 60']);
    onTestFinished(() => void holder.child.kill());
    await holder.waitFor('held');
    const end = await jobs.reeve('job', 'cancel', 'job-1', '--yes');
    expect(end.stdout).toBe(
      'job job-1 is asked to end: that is noticed within 4 s, and its container is gone within 10 s\n',
    );
    expect((await jobs.reeve('job', 'list')).stdout).toContain('running, to be cancelled ');
  });

  it('tells a job that has ended from one that was never here (exit 65)', async () => {
    const jobs = makeJobRecords();
    await jobs.end('job-1', 2 * hourMs);
    await jobs.open('job-2', { completion: { body: { status: 'Fail', exit_code: 1 } } });
    const ended = await jobs.reeve('job', 'cancel', 'job-1', '--yes');
    const undelivered = await jobs.reeve('job', 'cancel', 'job-2', '--yes');
    expect([ended.status, ended.stderr]).toEqual([
      65,
      'reeve: cannot cancel job job-1: it ended as Success 2h ago\n',
    ]);
    expect([undelivered.status, undelivered.stderr]).toEqual([
      65,
      'reeve: cannot cancel job job-2: it has ended as Fail, which the server is still to be told\n',
    ]);
  });
});
