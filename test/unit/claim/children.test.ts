// The processes of jobs where there are no units: real ones, of small programs in the place of reeve.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { openRunners } from '../../../src/lib/claim/children.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { makeTempDir } from '../../support/temp.ts';

type RunnerContext = Parameters<typeof openRunners>[0];

const [node = '', entry = ''] = process.argv;
afterEach(() => {
  process.argv[1] = entry;
});

/** What is run as `reeve job run KEY`; `$ROOT/runs` has a line for each, written between the two parts of it. */
function prepare(program: string, before = '') {
  const stop = new AbortController();
  const root = makeTempDir();
  const file = join(root, 'reeve.cjs');
  const runs = join(root, 'runs');
  writeFileSync(runs, '');
  const note = `require('node:fs').appendFileSync(${JSON.stringify(runs)}, 'run\\n');`;
  writeFileSync(file, [before, note, program, ''].join('\n'));
  process.argv[1] = file;
  const locksDir = join(root, 'run/locks');
  mkdirSync(locksDir, { recursive: true });
  const paths = { stateDir: join(root, 'state'), locksDir, configFile: join(root, 'reeve.yaml') };
  // What is waited for between two attempts is no part of these tests.
  const clock = { ...systemClock, sleep: async () => {} };
  const ctx = { paths, clock, log: silentLog, signal: stop.signal } as unknown as RunnerContext;
  return { ctx, countRuns: () => readFileSync(runs, 'utf8').split('\n').length - 1, stop };
}

it('starts a process again that is killed, but not for ever', async () => {
  expect(node).not.toBe('');
  const { ctx, countRuns } = prepare("process.kill(process.pid, 'SIGKILL');");
  const runners = openRunners(ctx, () => 0);
  await runners.start('a');
  await runners.settle();
  expect(countRuns()).toBe(10);
  expect([...runners.unfinished]).toEqual([['a', 'SIGKILL, 10 times']]);
});

it('ends a process that does not end when it is told to stop', async () => {
  const { ctx, countRuns, stop } = prepare(
    'setInterval(() => {}, 1000);',
    "process.on('SIGTERM', () => {});",
  );
  const runners = openRunners(ctx, () => 0, 300);
  await runners.start('a');
  await expect.poll(countRuns, { timeout: 10_000 }).toBe(1);
  stop.abort();
  await runners.settle();
  expect([...runners.unfinished]).toEqual([['a', 'SIGKILL']]);
});

it('looks for a job that another process has no sooner than after ten seconds', async () => {
  const { ctx, countRuns } = prepare('');
  mkdirSync(join(ctx.paths.stateDir, 'jobs/a'), { recursive: true });
  const lock = join(ctx.paths.locksDir, 'job@a.lock');
  const holder = spawn('flock', ['--no-fork', '-x', lock, 'sh', '-c', 'echo held; exec sleep 60']);
  await once(holder.stdout, 'data');
  const runners = openRunners(ctx, () => 0);
  await runners.tend();
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  await runners.tend();
  await runners.settle();
  expect(countRuns()).toBe(0);
});
