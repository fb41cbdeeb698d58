// `job logs`: the files beside a job's artifacts, as they are and as they grow.
import { once } from 'node:events';
import { createWriteStream, symlinkSync } from 'node:fs';
import { appendFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { writeCompletion } from '../../../../src/lib/jobs/book.ts';
import { makeJobRecords } from '../../../support/job-records.ts';
import { startProcess } from '../../../support/programs.ts';

describe('job logs', () => {
  it('gives stdout to stdout and stderr to stderr, byte for byte', async () => {
    const jobs = makeJobRecords();
    await jobs.end('job-1');
    await jobs.writeLogs('job-1', 'out \u001b[31mred\r\nno end', 'trouble\n');
    const shown = await jobs.reeve('job', 'logs', 'job-1');
    expect(shown).toMatchObject({ status: 0, stdout: 'out \u001b[31mred\r\nno end', stderr: 'trouble\n' });
  });

  it('tells with --json where the files lie, and of a job without output that it has none', async () => {
    const jobs = makeJobRecords();
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
    const jobs = makeJobRecords();
    await jobs.end('job-1');
    const { stdout } = await jobs.writeLogs('job-1', '', '');
    await rm(stdout);
    symlinkSync(jobs.write('secret', 'hidden'), stdout);
    const shown = await jobs.reeve('job', 'logs', 'job-1');
    expect([shown.status === 0, shown.stdout]).toEqual([false, '']);
  });

  it('follows until the job has ended, also where its files are written again from their start', async () => {
    const jobs = makeJobRecords();
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
    const jobs = makeJobRecords();
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
    const jobs = makeJobRecords();
    await jobs.end('job-1');
    const { stdout } = await jobs.writeLogs('job-1', '', '');
    const line = Buffer.alloc(1024 * 1024, 'x');
    const big = createWriteStream(stdout);
    for (let n = 0; n < 300; n += 1) if (!big.write(line)) await once(big, 'drain');
    big.end();
    await once(big, 'finish');
    const peak = jobs.write(
      'peak.cjs',
      "process.on('exit', () => process.stderr.write(String(process.resourceUsage().maxRSS)));",
    );
    const script = `${inject('reeveBin')} job logs job-1 | wc -c`;
    const end = await startProcess('/bin/bash', ['-c', script], {
      ...{ REEVE_STATE: jobs.stateDir, REEVE_CACHE: join(jobs.root, 'cache') },
      ...{ REEVE_RUN: join(jobs.root, 'run'), NODE_OPTIONS: `--require=${peak}` },
    }).ended;
    expect(end).toMatchObject({ status: 0, stdout: `${300 * 1024 * 1024}\n` });
    expect(Number(end.stderr)).toBeLessThan(120_000);
  });
});
