// The one record of a job that is written by another process than its runner's.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { writeCancel } from '../../../src/lib/jobs/book.ts';
import { makeTempDir } from '../../support/temp.ts';

function makePlace() {
  const jobs = join(makeTempDir(), 'jobs');
  const directory = join(jobs, 'job-1');
  mkdirSync(directory, { recursive: true });
  const read = () => JSON.parse(readFileSync(join(directory, 'cancel.json'), 'utf8'));
  return { jobs, place: { key: 'job-1', directory, isOpen: true }, read };
}

const cancel = (reason: string) => ({ at: '2026-06-04T03:00:00.000Z', reason, by: 'operator' as const });

it('the first reason of a cancellation stays, whoever comes at the same time', async () => {
  const { jobs, place, read } = makePlace();
  expect(await writeCancel(place, cancel('first'))).toBe('written');
  expect(await Promise.all([writeCancel(place, cancel('b')), writeCancel(place, cancel('c'))])).toEqual([
    'known',
    'known',
  ]);
  expect(read()).toEqual({ version: 1, ...cancel('first') });
  expect(readdirSync(jobs)).toEqual(['job-1']);
});

it('a damaged one is replaced', async () => {
  const { place, read } = makePlace();
  writeFileSync(join(place.directory, 'cancel.json'), '{"version":1,');
  expect(await writeCancel(place, cancel('whole'))).toBe('written');
  expect(read()).toMatchObject({ reason: 'whole' });
});

it('a job that was closed meanwhile does not come back as a slot that nobody has', async () => {
  const { jobs, place } = makePlace();
  rmSync(place.directory, { recursive: true });
  expect(await writeCancel(place, cancel('late'))).toBe('gone');
  expect(existsSync(place.directory)).toBe(false);
  expect(readdirSync(jobs)).toEqual([]);
});
