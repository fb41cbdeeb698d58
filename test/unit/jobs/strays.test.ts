// What lies among the open jobs and is none: nothing of it keeps claims from going on.
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { countAnswers, readAnswers } from '../../../src/lib/jobs/answers.ts';
import { setStraysAside } from '../../../src/lib/jobs/strays.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { makeTempDir } from '../../support/temp.ts';

function makeJobs() {
  const stateDir = makeTempDir();
  const jobs = join(stateDir, 'jobs');
  mkdirSync(join(jobs, 'job-1'), { recursive: true });
  const warnings: string[] = [];
  const log = { warning: (text: string) => void warnings.push(text) };
  const ctx = { paths: { stateDir }, clock: systemClock, log } as unknown as Parameters<
    typeof setStraysAside
  >[0];
  return { jobs, ctx, warnings, names: () => readdirSync(jobs, { encoding: 'latin1' }) };
}

it.each([
  ['is no text', Buffer.from('a\xffb', 'latin1')],
  ['is as long as a name can be', Buffer.from('x'.repeat(255))],
  ['is long in bytes', Buffer.from('ж'.repeat(127))],
  ['has a line feed', Buffer.from('a\nb')],
])('R32: a name that %s is set aside once', async (_, name) => {
  const { jobs, ctx, warnings, names } = makeJobs();
  mkdirSync(Buffer.concat([Buffer.from(`${jobs}/`), name]));
  await setStraysAside(ctx);
  await setStraysAside(ctx);
  expect(names().filter((one) => !one.startsWith('.corrupt-'))).toEqual(['job-1']);
  expect(warnings).toEqual(['what is no job was set aside']);
});

it('R32: a directory where an answer would lie is none, and takes no slot', () => {
  const { jobs, ctx } = makeJobs();
  mkdirSync(join(jobs, '.answer-1.json'));
  writeFileSync(
    join(jobs, '.answer-2.json'),
    '{"claimedAt":"2026-06-04T03:00:00.000Z","payload":{"id":"r"}}',
  );
  expect(countAnswers(ctx)).toBe(1);
  expect(readAnswers(ctx).map(({ name }) => name)).toEqual(['.answer-2.json']);
});
