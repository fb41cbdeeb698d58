// Jobs that close while the pass at the start looks at them: by another process, which has the lock until its job has ended.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, it, onTestFinished } from 'vitest';
import { applyClaimSteps } from '../../../src/lib/claim/apply.ts';
import { gatherClaimFacts } from '../../../src/lib/claim/gather.ts';
import { planClaim } from '../../../src/lib/claim/plan.ts';
import type { ClaimSession } from '../../../src/lib/claim/session.ts';
import type { ClaimStep } from '../../../src/lib/claim/steps.ts';
import type { Context } from '../../../src/lib/context.ts';
import { openEngine } from '../../../src/lib/docker/client.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { engineSocket } from '../../support/engine.ts';
import { type JobRecordsMachine, makeJobRecords } from '../../support/job-records.ts';

const settled = { at: '2026-06-04T12:00:00.000Z', how: 'acknowledged' as const };

function contextOf({ stateDir, root }: JobRecordsMachine): Context {
  const locksDir = join(root, 'run/locks');
  mkdirSync(locksDir, { recursive: true });
  mkdirSync(join(stateDir, 'jobs-ended'), { recursive: true });
  const paths = { stateDir, locksDir, runDir: join(root, 'run') };
  const signal = new AbortController().signal;
  return { paths, clock: systemClock, log: silentLog, signal, runId: 'r', command: 'claim' } as Context;
}

/** Takes the lock of each job that it is told, answers, and closes the job after so many milliseconds. */
function startClosers(ctx: Context) {
  const script = `while read -r key ms; do
    exec 9>"$1/job@$key.lock"; flock -x 9; echo "$key"
    sleep "0.0$ms"; mv "$2/jobs/$key" "$2/jobs-ended/$key"; exec 9>&-
  done`;
  const child = spawn('bash', ['-c', script, 'bash', ctx.paths.locksDir, ctx.paths.stateDir], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill());
  const lines = createInterface(child.stdout);
  return async (key: string, ms: number): Promise<void> => {
    child.stdin.write(`${key} ${String(ms).padStart(2, '0')}\n`);
    await once(lines, 'line');
  };
}

it('gives up no job that ends while it is looked at, and leaves it ended', async () => {
  const machine = makeJobRecords();
  const ctx = contextOf(machine);
  const engine = openEngine({ socket: engineSocket(), log: silentLog, signal: ctx.signal });
  onTestFinished(() => engine.close());
  const close = startClosers(ctx);
  const steps: ClaimStep[] = [];
  for (let round = 0; round < 200; round += 1) {
    const key = `job-${round}`;
    await machine.open(key, { completion: { settled } });
    await close(key, round % 12);
    steps.push(...planClaim(await gatherClaimFacts(ctx, engine, []), new Date()));
    await expect
      .poll(() => readdirSync(join(ctx.paths.stateDir, 'jobs')), { interval: 2, timeout: 60_000 })
      .toEqual([]);
  }
  expect(steps.filter(({ kind }) => kind !== 'start')).toEqual([]);
});

it.each(['give-up', 'deliver', 'restore'] as const)(
  'does not %s a job that has ended since it was looked at',
  async (kind) => {
    const machine = makeJobRecords();
    const ctx = contextOf(machine);
    await machine.end('a');
    const container = { id: 'c', runId: 'r', jobId: 'a', key: 'a', state: 'running' } as const;
    // What it would talk to is not there: it must not come to that.
    const session = { ctx } as ClaimSession;
    const step = { kind, key: 'a', container, reason: 'as it was' } as ClaimStep;
    expect(await applyClaimSteps(session, [step])).toEqual([]);
    expect(readdirSync(join(ctx.paths.stateDir, 'jobs'))).toEqual([]);
  },
);

it('P45 goes on where a job is busy or a step fails, and tells of the failure alone', async () => {
  const machine = makeJobRecords();
  const ctx = contextOf(machine);
  for (const key of ['a', 'b']) await machine.open(key, { completion: { settled } });
  const lock = join(ctx.paths.locksDir, 'job@a.lock');
  const holder = spawn('flock', ['--no-fork', '-x', lock, 'sh', '-c', 'echo held; exec sleep 60']);
  onTestFinished(() => void holder.kill('SIGKILL'));
  await once(holder.stdout, 'data');
  const started: string[] = [];
  const runners = { start: async (key: string) => void started.push(key) };
  const session = { ctx, runners } as unknown as ClaimSession;
  const steps: ClaimStep[] = [
    { kind: 'trouble', about: 'job x', reason: 'it is version 9' },
    { kind: 'give-up', key: 'a', reason: 'as it was' },
    { kind: 'start', key: 'b', reason: 'it is open' },
  ];
  expect(await applyClaimSteps(session, steps)).toEqual(['cannot look at job x: it is version 9']);
  expect(started).toEqual(['b']);
});
