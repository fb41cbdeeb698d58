import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { keepAnswer, readAnswers } from '../../../src/lib/jobs/answers.ts';
import { closeJob, listOpenJobs } from '../../../src/lib/jobs/book.ts';
import type { JobClaim } from '../../../src/lib/jobs/records.ts';
import {
  fillSlot,
  giveSlotBack,
  openInSlot,
  reserveSlot,
  type SlotContext,
} from '../../../src/lib/jobs/slots.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { makeTempDir } from '../../support/temp.ts';

function aContext(): SlotContext {
  const root = makeTempDir();
  const runDir = join(root, 'run');
  return {
    paths: {
      configFile: join(root, 'reeve.yaml'),
      stateDir: join(root, 'state'),
      runDir,
      cacheDir: join(root, 'cache'),
      locksDir: join(runDir, 'locks'),
      wakeDir: join(runDir, 'wake'),
    },
    clock: systemClock,
    log: silentLog,
    runId: 'run',
    command: 'claim',
    signal: new AbortController().signal,
  };
}

function aClaim(jobId: string): JobClaim {
  return { source: 'claim', claimedAt: '2026-06-04T12:00:00.000Z', runId: 'run', jobId, payload: {} };
}

/** As another process that asks for a job. */
function writeReservation({ paths }: SlotContext, text: string): void {
  mkdirSync(paths.runDir, { recursive: true });
  writeFileSync(join(paths.runDir, 'claiming'), text);
}

function startTimeOf(pid: number): string {
  const { stdout } = spawnSync('cat', [`/proc/${pid}/stat`], { encoding: 'utf8' });
  return stdout.slice(stdout.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

it('P56 keeps a slot for the job of a claim and gives it back when that ends', async () => {
  const ctx = aContext();
  expect(await reserveSlot(ctx, 1)).toBe(true);
  expect(await fillSlot(ctx, aClaim('a'))).toBe(true);
  expect(await reserveSlot(ctx, 1)).toBe(false);
  expect(await reserveSlot(ctx, 2)).toBe(true);
  await closeJob(ctx, 'a');
  giveSlotBack(ctx);
  expect(await reserveSlot(ctx, 1)).toBe(true);
});

it('P56 counts the reservation of another process while it lives', async () => {
  const ctx = aContext();
  writeReservation(ctx, `1 ${startTimeOf(1)}\n`);
  expect(await reserveSlot(ctx, 1)).toBe(false);
  expect(await openInSlot(ctx, aClaim('a'), 1)).toBe('full');
  expect(await openInSlot(ctx, aClaim('a'), 2)).toBe('opened');
});

it.each([
  ['of a process that is gone', '4194303 1\n'],
  ['of a process whose number is another one’s now', '1 99999999999\n'],
  ['that was cut', ''],
  ['that is no reservation', 'what\n'],
])('does not count a reservation %s', async (_, text) => {
  const ctx = aContext();
  writeReservation(ctx, text);
  expect(await reserveSlot(ctx, 1)).toBe(true);
});

it('opens no job twice, open or ended', async () => {
  const ctx = aContext();
  expect(await openInSlot(ctx, aClaim('a'), 4)).toBe('opened');
  expect(await openInSlot(ctx, aClaim('a'), 4)).toBe('known');
  await closeJob(ctx, 'a');
  await reserveSlot(ctx, 4);
  expect(await fillSlot(ctx, aClaim('a'))).toBe(false);
  expect(await listOpenJobs(ctx)).toEqual([]);
});

it('P44 opens what is running already whatever the number of slots', async () => {
  const ctx = aContext();
  for (const id of ['a', 'b', 'c']) expect(await openInSlot(ctx, aClaim(id))).toBe('opened');
  expect(await reserveSlot(ctx, 2)).toBe(false);
});

it('lets no more than the slots through, however many ask at once', async () => {
  const ctx = aContext();
  const ids = Array.from({ length: 12 }, (_, index) => `job-${index}`);
  const answers = await Promise.all(ids.map((id) => openInSlot(ctx, aClaim(id), 5)));
  expect(answers.filter((answer) => answer === 'opened')).toHaveLength(5);
  expect(await listOpenJobs(ctx)).toHaveLength(5);
});

it('does not take a file among the open jobs for a slot', async () => {
  const ctx = aContext();
  mkdirSync(join(ctx.paths.stateDir, 'jobs'), { recursive: true });
  writeFileSync(join(ctx.paths.stateDir, 'jobs/stray.json'), '{}');
  expect(await reserveSlot(ctx, 1)).toBe(true);
});

it('P56 counts an answer that a killed claimer has kept until its job is made', async () => {
  const ctx = aContext();
  const name = keepAnswer(ctx, { job_id: 'a' });
  expect(readAnswers(ctx)).toEqual([expect.objectContaining({ name, payload: { job_id: 'a' } })]);
  expect(await reserveSlot(ctx, 1)).toBe(false);
  expect(await openInSlot(ctx, aClaim('b'), 1)).toBe('full');
  expect(await fillSlot(ctx, aClaim('a'), name)).toBe(true);
  expect(readAnswers(ctx)).toEqual([]);
  expect(await reserveSlot(ctx, 2)).toBe(true);
});

it('P32 asks for no slot any longer once its caller has left or the node is stopped', async () => {
  const ctx = aContext();
  mkdirSync(ctx.paths.locksDir, { recursive: true });
  const lock = join(ctx.paths.locksDir, 'slots.lock');
  const holder = spawn('flock', ['--no-fork', '-x', lock, 'sh', '-c', 'echo held; exec sleep 60']);
  onTestFinished(() => void holder.kill('SIGKILL'));
  await once(holder.stdout, 'data');
  const leave = new AbortController();
  const opening = openInSlot({ ...ctx, signal: leave.signal }, aClaim('a'), 4);
  setTimeout(() => leave.abort(), 200);
  await expect(opening).rejects.toMatchObject({ code: 'aborted' });
  expect(await listOpenJobs(ctx)).toEqual([]);
});

it('goes on with other answers where one cannot be read, and keeps it', () => {
  const ctx = aContext();
  const warnings: string[] = [];
  const name = keepAnswer(ctx, { job_id: 'a' });
  const bad = keepAnswer(ctx, { job_id: 'b' });
  // Longer than what can be read in one piece.
  truncateSync(join(ctx.paths.stateDir, 'jobs', bad), 2 ** 29);
  const log = { ...silentLog, warning: (text: string) => void warnings.push(text) };
  expect(readAnswers({ ...ctx, log }).map((answer) => answer.name)).toEqual([name]);
  expect(warnings).toEqual([expect.stringContaining(bad)]);
});
