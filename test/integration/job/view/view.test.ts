// What `job list`, `show`, `logs` and `cancel` make of the records on disk: real processes, and no engine or server is needed.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, existsSync, mkdirSync, renameSync, symlinkSync, utimesSync } from 'node:fs';
import { appendFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openJob, writeCompletion, writeProgress } from '../../../../src/lib/jobs/book.ts';
import type { JobClaim, JobCompletion, JobProgress } from '../../../../src/lib/jobs/records.ts';
import { type Machine, makeMachine } from '../../../support/machine.ts';

const hourMs = 60 * 60_000;

type JobOptions = { progress?: Partial<JobProgress>; completion?: Partial<JobCompletion>; payload?: unknown };

function makeJobs() {
  const machine = makeMachine({
    jobs: { server_url: 'https://ploy.example', node_id: 'node-1', concurrency: 4 },
  });
  const paths = { stateDir: machine.stateDir };
  const ctx = { paths, clock: { now: () => new Date() }, log: {} } as unknown as Parameters<
    typeof openJob
  >[0];
  const placeOf = (key: string) => ({ key, directory: join(machine.stateDir, 'jobs', key), isOpen: true });
  const open = async (jobId: string, { progress, completion, payload }: JobOptions = {}): Promise<void> => {
    const claimedAt = new Date(Date.now() - hourMs).toISOString();
    const claim: JobClaim = {
      source: 'claim',
      claimedAt,
      runId: 'run-1',
      jobId,
      payload: payload ?? { job_name: 'mig-0' },
    };
    await openJob(ctx, claim);
    if (progress !== undefined) {
      const logs = { nextChunk: 0, sentBytes: 0, closed: false };
      await writeProgress(placeOf(jobId), {
        phase: 'running',
        since: claimedAt,
        logs,
        steps: [],
        ...progress,
      });
    }
    if (completion !== undefined) {
      await writeCompletion(placeOf(jobId), {
        body: { status: 'Success' },
        decidedAt: claimedAt,
        attempts: 1,
        ...completion,
      });
    }
  };
  const end = async (jobId: string, options: JobOptions = {}, agoMs = 0): Promise<void> => {
    const settled = { at: new Date(Date.now() - agoMs).toISOString(), how: 'acknowledged' as const };
    await open(jobId, { completion: { settled }, ...options });
    move(machine, jobId, agoMs);
  };
  const artifacts = join(machine.root, 'cache/jobs/runs/run-1/artifacts');
  const writeLogs = async (
    jobId: string,
    stdout: string,
    stderr: string,
  ): Promise<{ stdout: string; stderr: string }> => {
    mkdirSync(join(artifacts, jobId), { recursive: true });
    const files = {
      stdout: join(artifacts, jobId, 'stdout.log'),
      stderr: join(artifacts, jobId, 'stderr.log'),
    };
    await writeFile(files.stdout, stdout);
    await writeFile(files.stderr, stderr);
    return files;
  };
  return { ...machine, open, end, placeOf, writeLogs };
}

function move({ stateDir }: Machine, key: string, agoMs = 0): void {
  mkdirSync(join(stateDir, 'jobs-ended'), { recursive: true });
  const ended = join(stateDir, 'jobs-ended', key);
  renameSync(join(stateDir, 'jobs', key), ended);
  utimesSync(ended, new Date(Date.now() - agoMs), new Date(Date.now() - agoMs));
}

const idsOf = (stdout: string): string[] => JSON.parse(stdout).jobs.map(({ id }: { id: string }) => id);

describe('job list', () => {
  it('has open jobs first, then those of the last day, and with --all every one that is kept', async () => {
    const jobs = makeJobs();
    const nothing = await jobs.reeve('job', 'list');
    expect([nothing.status, nothing.stdout]).toEqual([0, 'no job\n']);
    await jobs.end('of-last-week', {}, 7 * 24 * hourMs);
    await jobs.end('of-today', {}, 2 * hourMs);
    await jobs.end('just-now');
    await jobs.open('open-1', { progress: { containerId: 'f'.repeat(64) } });
    const listed = await jobs.reeve('job', 'list');
    expect([listed.status, listed.stderr]).toEqual([0, '']);
    expect(listed.stdout.split('\n').map((line) => line.replaceAll(/ {2,}/g, ' | '))).toEqual([
      'JOB | RUN | NAME | STATE | WHEN | CONTAINER',
      'open-1 | run-1 | mig-0 | running, nobody at it | for 1h | ffffffffffff',
      expect.stringMatching(/^just-now \| run-1 \| mig-0 \| Success \| ended .* ago$/),
      'of-today | run-1 | mig-0 | Success | ended 2h ago',
      '',
    ]);
    const all = await jobs.reeve('job', 'list', '--all', '--json');
    expect(idsOf(all.stdout)).toEqual(['open-1', 'just-now', 'of-today', 'of-last-week']);
    expect(JSON.parse(all.stdout)).toMatchObject({
      ...{ version: 1, command: 'job list', outcome: 'done', unreadable: [] },
      jobs: [
        { open: true, held: false, phase: 'running', status: null },
        {},
        {},
        { open: false, status: 'Success' },
      ],
    });
  });

  it('shows what is damaged, and what cannot be read does not hide the rest', async () => {
    const jobs = makeJobs();
    await jobs.open('damaged');
    jobs.write('state/jobs/damaged/claim.json', '{"version":1,');
    await jobs.open('newer');
    jobs.write('state/jobs/newer/claim.json', { version: 99 });
    await jobs.open('whole');
    jobs.write('state/jobs/no directory', 'x');
    const listed = await jobs.reeve('job', 'list', '--json');
    expect(listed.status).toBe(1);
    expect(idsOf(listed.stdout)).toEqual(['damaged', 'whole']);
    expect(JSON.parse(listed.stdout)).toMatchObject({
      ...{ outcome: 'partial', jobs: [{ run: null, claimedAt: null }, { run: 'run-1' }] },
      unreadable: [{ key: 'newer', message: expect.stringContaining('it is version 99') }],
    });
    expect(jobs.read('state/jobs/damaged/claim.json')).toBe('{"version":1,');
    const shown = await jobs.reeve('job', 'show', 'damaged');
    expect([shown.status, shown.stdout]).toEqual([0, expect.stringContaining('its claim is damaged')]);
  });

  it('stays fast beside 10,000 ended jobs, and finds one of them', async () => {
    const jobs = makeJobs();
    const ended = {
      version: 1,
      decidedAt: '2026-06-04T03:00:00.000Z',
      attempts: 1,
      body: { status: 'Success' },
    };
    const claim = { version: 1, source: 'claim', claimedAt: '2026-06-04T03:00:00.000Z', runId: 'run-1' };
    const old = new Date(Date.now() - 48 * hourMs);
    for (let n = 0; n < 10_000; n += 1) {
      jobs.write(`state/jobs-ended/job-${n}/claim.json`, { ...claim, jobId: `job-${n}` });
      jobs.write(`state/jobs-ended/job-${n}/completion.json`, ended);
      utimesSync(join(jobs.stateDir, `jobs-ended/job-${n}`), old, old);
    }
    await jobs.open('open-1');
    const begunMs = performance.now();
    const listed = await jobs.reeve('job', 'list', '--json');
    const listMs = performance.now() - begunMs;
    expect(idsOf(listed.stdout)).toEqual(['open-1']);
    expect(listMs).toBeLessThan(5000);
    const shown = await jobs.reeve('job', 'show', 'job-9999', '--json');
    expect(JSON.parse(shown.stdout)).toMatchObject({
      job: { id: 'job-9999', open: false, status: 'Success' },
    });
    const all = await jobs.reeve('job', 'list', '--all', '--json');
    expect(idsOf(all.stdout)).toHaveLength(10_001);
    console.log(`list of 10,000: ${Math.round(listMs)} ms`);
  });
});

describe('ids', () => {
  it.each(['show', 'logs', 'cancel'])(
    '`job %s` refuses those that no job has, and none leads out (exit 65)',
    async (command) => {
      const jobs = makeJobs();
      await jobs.open('open-1');
      mkdirSync(join(jobs.stateDir, 'x'));
      for (const id of ['missing', '../x', '/etc', '.', 'open-1/', '\u001b[2J']) {
        const end = await jobs.reeve('job', command, id);
        expect([end.status, end.stdout]).toEqual([65, '']);
        expect(end.stderr).toContain(`job ${JSON.stringify(id)}: this node knows none of that id`);
      }
      expect(existsSync(join(jobs.stateDir, 'x/cancel.json'))).toBe(false);
    },
  );

  it('of the server that are no file names find their job', async () => {
    const jobs = makeJobs();
    await jobs.open('../x');
    expect((await jobs.reeve('job', 'show', '../x')).stdout).toContain('job ../x (mig-0) of run run-1');
  });
});

describe('job logs', () => {
  it('gives stdout to stdout and stderr to stderr, byte for byte', async () => {
    const jobs = makeJobs();
    await jobs.end('job-1');
    await jobs.writeLogs('job-1', 'out \u001b[31mred\r\nno end', 'trouble\n');
    const shown = await jobs.reeve('job', 'logs', 'job-1');
    expect(shown).toMatchObject({ status: 0, stdout: 'out \u001b[31mred\r\nno end', stderr: 'trouble\n' });
  });

  it('tells with --json where the files lie, and of a job without output that it has none', async () => {
    const jobs = makeJobs();
    await jobs.open('silent');
    const silent = await jobs.reeve('job', 'logs', 'silent');
    expect(silent).toMatchObject({
      status: 0,
      stdout: '',
      stderr: expect.stringContaining('no output here'),
    });
    await jobs.end('job-1');
    const files = await jobs.writeLogs('job-1', 'out\n', '');
    const told = await jobs.reeve('job', 'logs', 'job-1', '--json');
    expect(JSON.parse(told.stdout)).toEqual({
      ...{ version: 1, command: 'job logs', outcome: 'done', job: 'job-1', run: 'run-1', open: false },
      stdout: { path: files.stdout, sizeBytes: 4 },
      stderr: { path: files.stderr, sizeBytes: 0 },
    });
  });

  it('follows no link that stands in place of a log', async () => {
    const jobs = makeJobs();
    await jobs.end('job-1');
    const { stdout } = await jobs.writeLogs('job-1', '', '');
    await rm(stdout);
    symlinkSync(jobs.write('secret', 'hidden'), stdout);
    const shown = await jobs.reeve('job', 'logs', 'job-1');
    expect([shown.status === 0, shown.stdout]).toEqual([false, '']);
  });

  it('follows until the job has ended, also where its files are written again from their start', async () => {
    const jobs = makeJobs();
    await jobs.open('job-1', { progress: {} });
    const files = await jobs.writeLogs('job-1', 'one\n', '');
    const following = jobs.start(['job', 'logs', '-f', 'job-1']);
    await following.waitFor('one\n');
    await appendFile(files.stdout, 'two\n');
    await appendFile(files.stderr, 'warning\n');
    await following.waitFor('two\n');
    await following.waitFor('warning\n');
    // As a process that takes the job up again does it.
    await writeFile(files.stdout, 'one\n');
    await appendFile(files.stdout, 'two\nthree\n');
    await following.waitFor('three\n');
    await appendFile(files.stdout, 'last\n');
    await writeCompletion(jobs.placeOf('job-1'), {
      body: { status: 'Success' },
      decidedAt: new Date().toISOString(),
      attempts: 0,
    });
    expect(await following.ended).toMatchObject({
      status: 0,
      stdout: 'one\ntwo\nthree\nlast\n',
      stderr: 'warning\n',
    });
  });

  it('stops following at a signal, and when nobody reads any more', async () => {
    const jobs = makeJobs();
    await jobs.open('job-1');
    const files = await jobs.writeLogs('job-1', 'one\n', '');
    const stopped = jobs.start(['job', 'logs', '--follow', 'job-1']);
    await stopped.waitFor('one\n');
    stopped.child.kill('SIGTERM');
    expect(await stopped.ended).toMatchObject({ status: 143, signal: null });
    const left = jobs.start(['job', 'logs', '--follow', 'job-1']);
    await left.waitFor('one\n');
    left.child.stdout.destroy();
    left.child.stderr.destroy();
    await appendFile(files.stdout, 'two\n');
    await appendFile(files.stderr, 'two\n');
    expect(await left.ended).toMatchObject({ status: 0 });
  });

  it('streams 300 MB with flat memory', async () => {
    const jobs = makeJobs();
    await jobs.end('job-1');
    const { stdout } = await jobs.writeLogs('job-1', '', '');
    const line = Buffer.alloc(1024 * 1024, 'x');
    const big = createWriteStream(stdout);
    for (let n = 0; n < 300; n += 1) if (!big.write(line)) await once(big, 'drain');
    big.end();
    await once(big, 'finish');
    const main = join(import.meta.dirname, '../../../../src/commands/main.ts');
    const child = spawn(
      '/usr/bin/env',
      ['bash', '-c', 'ulimit -d 400000; "$@" | wc -c', '-', process.execPath, main, 'job', 'logs', 'job-1'],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: {
          ...process.env,
          REEVE_STATE: jobs.stateDir,
          REEVE_CACHE: join(jobs.root, 'cache'),
          REEVE_RUN: join(jobs.root, 'run'),
        },
      },
    );
    onTestFinished(() => void child.kill());
    let told = '';
    child.stdout.on('data', (bytes) => {
      told += String(bytes);
    });
    await once(child, 'close');
    expect(told.trim()).toBe(String(300 * 1024 * 1024));
  });
});

describe('job cancel', () => {
  it('asks for the end of a job once: the first reason stays', async () => {
    const jobs = makeJobs();
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
    const jobs = makeJobs();
    await jobs.open('job-1', { progress: { containerId: 'f'.repeat(64) } });
    const holder = jobs.start(['lock', 'job@job-1', '--', 'bash', '-c', 'echo held; exec sleep 60']);
    onTestFinished(() => void holder.child.kill());
    await holder.waitFor('held');
    const end = await jobs.reeve('job', 'cancel', 'job-1', '--yes');
    expect(end.stdout).toBe(
      'job job-1 is asked to end: that is noticed within 4 s, and its container is gone within 10 s of that\n',
    );
    expect((await jobs.reeve('job', 'list')).stdout).toContain('running, to be cancelled ');
  });

  it('tells a job that has ended from one that was never here (exit 65)', async () => {
    const jobs = makeJobs();
    await jobs.end('job-1', {}, 2 * hourMs);
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
