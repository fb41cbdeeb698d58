// The log of a job: whole, in numbered chunks, whatever happens to `job run` and to the server on the way.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type JobRuns, makeJobRuns } from '../../support/job-runs.ts';
import { askDocker } from '../../support/node.ts';
import { readLines } from '../../support/ploy/jobs.ts';
import { listLines } from '../../support/ploy/ledger.ts';
import type { PloyJob } from '../../support/ploy/model.ts';
import type { Program } from '../../support/programs.ts';

/** `REEVE_LOG_MB=1000`, as `scripts/test long` has it, is what is promised. */
const largeMb = Number(process.env['REEVE_LOG_MB'] ?? 300);

const idOf = (job: PloyJob): string => job.payload.job_id;
const run = (runs: JobRuns, job: PloyJob): Program => runs.start(['job', 'run', idOf(job)]);

/** Numbered lines on both streams, as fast as a shell prints them. */
const counting = (count: number): string =>
  `i=0; while [ $i -lt ${count} ]; do echo "line $i"; echo "error $i" >&2; i=$((i+1)); done`;

/** Lines of which each comes once the one before has been sent, so that it has a chunk of its own. */
const oneByOne = (count: number): string =>
  Array.from({ length: count }, (_, at) => `echo ${at}; while [ ! -e /out/${at} ]; do sleep 0.1; done`).join(
    '; ',
  );

/** Lets such a job go on after each line, once the server was asked to take it; after `chunks` of them it is not asked any more. */
async function letGo(runs: JobRuns, job: PloyJob, chunks: number, lines = chunks): Promise<void> {
  const asked = () => runs.ploy.requestsTo('logs').length;
  for (let line = 0; line < lines; line += 1) {
    await runs.ploy.waitUntil(`chunk ${line}`, () => asked() >= Math.min(line + 1, chunks));
    const [container = ''] = await runs.containers(job);
    await askDocker(runs.socket, ['exec', container, 'touch', `/out/${line}`]);
  }
}

function expectEveryLine(runs: JobRuns, job: PloyJob, count: number): void {
  const numbers = Array.from({ length: count }, (_, index) => index);
  expect(readLines(job, 'stdout')).toEqual(numbers.map((index) => `line ${index}`));
  expect(readLines(job, 'stderr')).toEqual(numbers.map((index) => `error ${index}`));
  expect(runs.ploy.state.violations).toEqual([]);
}

describe('the log of a job', () => {
  it('P36, P62, P63: has every line once, and no number with two contents, however often job run is killed', {
    timeout: 300_000,
  }, async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: `${counting(3000)}; sleep 4; ${counting(0)}; sleep 3` });
    // Answers that are lost after the chunk is stored, and others before it.
    runs.ploy.faults.add({ route: 'logs', kind: 'reset', committed: true, oneIn: 3 });
    runs.ploy.faults.add({ route: 'logs', kind: 'answer', status: 503, oneIn: 3 });
    let kills = 0;
    for (; !runs.isClosed(job) && kills < 40; kills += 1) {
      const program = run(runs, job);
      const seen = runs.ploy.requestsTo('logs').length;
      const isNext = (): boolean => runs.ploy.requestsTo('logs').length > seen || runs.isClosed(job);
      await Promise.race([
        runs.ploy.waitUntil('the next chunk', isNext, 60_000).catch(() => {}),
        program.ended,
      ]);
      if (kills < 6) program.child.kill('SIGKILL');
      await program.ended;
    }
    console.log(`figure: ${kills} runs, ${job.chunks.size} chunks, ${job.repeatedChunks} sent again`);
    expectEveryLine(runs, job, 3000);
    expect(job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
  });

  it('R28: waits for a server that has a bad minute, and loses nothing', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: counting(100) });
    runs.ploy.faults.add({ route: 'logs', kind: 'answer', status: 503, times: 5 });
    const end = await run(runs, job).ended;
    expect([end.status, end.stderr]).toEqual([0, '']);
    expectEveryLine(runs, job, 100);
  });

  it('R28: takes a conflict for a number that is taken, a few times: no line is lost by it', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: counting(100) });
    runs.ploy.faults.add({ route: 'logs', kind: 'answer', status: 409, times: 1 });
    runs.ploy.faults.add({ route: 'logs', kind: 'reset', committed: true, times: 1 });
    runs.ploy.faults.add({ route: 'logs', kind: 'answer', status: 409, times: 1 });
    const end = await run(runs, job).ended;
    expect([end.status, end.stderr]).toEqual([0, '']);
    // The first number was left to whoever has it; of the second one, all answers after the lost one say that it is there.
    expect([job.chunks.has(0), job.repeatedChunks]).toEqual([false, 2]);
    expect(job.lines).toEqual({ stdout: 100, stderr: 100 });
    expect(listLines(job, 'stdout')).toEqual(Array.from({ length: 100 }, (_, index) => `line ${index}`));
    runs.ploy.faults.add({ route: 'logs', kind: 'answer', status: 409 });
    const other = runs.claim({ command: 'echo 1' });
    expect((await run(runs, other).ended).stderr).toContain('answered 409');
    expect(other.completions).toMatchObject([{ status: 'Success' }]);
    expect(runs.ploy.state.violations).toEqual([]);
  });

  it('P63: comes after all that the original has sent, with few questions for a free number', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim();
    for (let chunkNo = 0; chunkNo < 700; chunkNo += 1) {
      job.chunks.set(chunkNo, {
        ...{ chunkNo, atMs: 0, gzipBytes: 1, sha256: 'theirs', bytes: 1 },
        frames: [],
      });
    }
    const labels = [`com.ploy.run_id=${job.payload.id}`, `com.ploy.job_id=${idOf(job)}`];
    const words = ['run', '-d', ...labels.flatMap((label) => ['--label', label]), 'reeve-demo/worker:v1'];
    runs.adopt(
      job,
      (await askDocker(runs.socket, [...words, 'sh', '-c', 'echo late; sleep 3; echo over'])).trim(),
    );
    expect((await run(runs, job).ended).status).toBe(0);
    expect(listLines(job, 'stdout')).toEqual(['late', 'over']);
    expect(runs.ploy.requestsTo('logs').length).toBeLessThan(15);
    expect(runs.ploy.state.violations).toEqual([]);
  });

  it('R28: backs off from a server that says of every number that it is taken', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: 'echo begun; sleep 60' });
    runs.ploy.faults.add({ route: 'logs', kind: 'answer', status: 500, text: 'logs_run_job_chunk_uniq' });
    const program = run(runs, job);
    await runs.ploy.waitUntil('questions', () => runs.ploy.requestsTo('logs').length >= 25);
    program.child.kill('SIGTERM');
    await program.ended;
    const times = runs.ploy.requestsTo('logs').map(({ atMs }) => atMs);
    expect((times[24] ?? 0) - (times[20] ?? 0)).toBeGreaterThan(1000);
    expect(job.completions).toEqual([]);
  });

  it('R28: drops a chunk that is refused, with one message for all of them', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: oneByOne(3) });
    runs.ploy.faults.add({ route: 'logs', kind: 'answer', status: 400, text: 'no good' });
    const program = run(runs, job);
    await letGo(runs, job, 3);
    const end = await program.ended;
    expect([end.status, end.stderr.match(/no good/g)?.length]).toEqual([0, 1]);
    expect([runs.ploy.requestsTo('logs').length, job.events.length]).toEqual([3, 1]);
    expect(job.completions).toMatchObject([{ status: 'Success' }]);
  });

  it('R28: sends no more once the node is not allowed to', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command: oneByOne(2) });
    runs.ploy.faults.add({ route: 'logs', kind: 'answer', status: 403, text: 'not yours' });
    const program = run(runs, job);
    await letGo(runs, job, 1, 2);
    const end = await program.ended;
    expect([end.status, end.stderr.match(/not yours/g)?.length]).toEqual([0, 1]);
    expect(runs.ploy.requestsTo('logs')).toHaveLength(1);
  });

  it('P62: of a GB, or some of one, takes no more than 150 MB', { timeout: 900_000 }, async () => {
    const runs = await makeJobRuns();
    const line = 'x'.repeat(999);
    const job = runs.claim({ command: `yes ${line} | head -c ${largeMb}000000` });
    const program = runs.start(['job', 'run', idOf(job)]);
    let peakKib = 0;
    const timer = setInterval(() => {
      try {
        const status = readFileSync(`/proc/${program.pid}/status`, 'utf8');
        peakKib = Math.max(peakKib, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0));
      } catch {
        // It has ended.
      }
    }, 50);
    const startedAtMs = Date.now();
    const end = await program.ended;
    clearInterval(timer);
    expect(end.status).toBe(0);
    const chunks = [...job.chunks.values()];
    const largest = Math.max(...chunks.map(({ gzipBytes }) => gzipBytes));
    const seconds = Math.round((Date.now() - startedAtMs) / 1000);
    console.log(
      `figure: ${largeMb} MB of log: ${Math.round(peakKib / 1024)} MiB at most, ${seconds} s, ${chunks.length} chunks, the largest ${largest} bytes`,
    );
    expect(job.lines.stdout).toBe(largeMb * 1000);
    expect(peakKib).toBeLessThan(150 * 1024);
    expect(largest).toBeLessThan(10 * 1024 * 1024 - 64);
  });
});
