import { existsSync, mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { listEndedJobs } from '../../../src/lib/jobs/book.ts';
import { endedJobsDir } from '../../../src/lib/jobs/records.ts';
import { forgetEndedJobs, planForgotten } from '../../../src/lib/jobs/retention.ts';
import { acquireLock, lockPath } from '../../../src/lib/lock/flock.ts';
import { jobLock } from '../../../src/lib/lock/names.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { createConfigHome } from '../../support/config-home.ts';

const now = new Date('2026-06-04T12:00:00.000Z');
const dayMs = 24 * 60 * 60_000;
const ended = (key: string, agoMs: number) => ({ key, endedAtMs: now.getTime() - agoMs });

it('keeps the last 200 jobs that have ended', () => {
  const jobs = Array.from({ length: 203 }, (_, index) => ended(`job-${index}`, index * 1000));
  expect(planForgotten(jobs, now)).toEqual(['job-200', 'job-201', 'job-202']);
});

it('keeps none for longer than seven days', () => {
  expect(planForgotten([ended('old', 7 * dayMs + 1), ended('week', 7 * dayMs)], now)).toEqual(['old']);
});

it('keeps what ended in the future, as after a clock that went back', () => {
  expect(planForgotten([ended('future', -dayMs)], now)).toEqual([]);
});

it('forgets nothing where there is nothing', () => {
  expect(planForgotten([], now)).toEqual([]);
});

it('removes the records of old jobs with their locks, but what somebody has or what may not go', async () => {
  const { paths } = await createConfigHome();
  const keys = ['held', 'left', 'new', 'old'];
  for (const key of keys) {
    const directory = join(endedJobsDir(paths), key);
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, 'claim.json'), '{}');
    if (key !== 'new') utimesSync(directory, 0, 0);
    (await acquireLock(paths.locksDir, jobLock(key), aRequest)).release();
  }
  const lock = await acquireLock(paths.locksDir, jobLock('held'), aRequest);
  expect(await forgetEndedJobs({ ...aRequest, paths, log: silentLog }, new Set(['held', 'new', 'old']))).toBe(
    1,
  );
  lock.release();
  expect(await listEndedJobs({ paths })).toEqual(['held', 'left', 'new']);
  expect(keys.filter((key) => existsSync(lockPath(paths.locksDir, jobLock(key))))).toEqual([
    'held',
    'left',
    'new',
  ]);
});

const aRequest = { command: 'claim', runId: 'run', clock: systemClock };
