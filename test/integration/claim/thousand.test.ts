// Many short jobs, four at a time: none is lost, none doubled, and what reeve adds to each is bounded.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { JobStep } from '../../../src/lib/jobs/records.ts';
import { type ClaimNode, makeClaimNode } from '../../support/claim-node.ts';
import { readSlowness } from '../../support/machine-speed.ts';
import type { PloyJob } from '../../support/ploy/model.ts';

const count = Number(process.env['REEVE_JOBS'] ?? 40);
const limitMs = 120_000 + count * 2_000;
/** The container's own steps, and the repository's. */
const notOurs = ['create', 'start', 'wait', 'hydrate', 'diff'];

it('P7 P50 P51 runs many jobs at concurrency 4: none is lost, none doubled, and what a job costs beside its own is under 300 ms', {
  timeout: limitMs + 60_000,
  // Two cores, and four jobs at once: whatever else runs just then is measured, too.
  retry: 4,
}, async () => {
  const before = await readSlowness();
  const overheadMs = await runMany(count, 4);
  expect(overheadMs).toBeLessThan(300 * Math.max(before, await readSlowness()));
});

/** The median overhead of a job. */
async function runMany(size: number, concurrency: number): Promise<number> {
  const node = await makeClaimNode({ concurrency });
  const jobs = Array.from({ length: size }, () => node.ploy.queueJob({ command: 'true' }));
  const startedAtMs = performance.now();
  const program = node.start('claim', '--window', String(Math.ceil(limitMs / 1000)));
  await node.ploy.waitUntil('all jobs end', () => jobs.every((job) => job.completions.length > 0), limitMs);
  const seconds = (performance.now() - startedAtMs) / 1000;
  program.child.kill('SIGTERM');
  expect((await program.ended).status).toBe(143);
  // The last ones were told to stop before they had tidied up.
  expect((await node.reeve('claim', '--window', '0')).status).toBe(0);

  expect(jobs.filter(({ status }) => status !== 'Success')).toEqual([]);
  expect(jobs.filter(({ completions }) => completions.length !== 1)).toEqual([]);
  expect(jobs.flatMap(({ refusedCompletions }) => refusedCompletions)).toEqual([]);
  expect(node.ploy.state.violations).toEqual([]);
  expect(await node.containers()).toEqual([]);
  process.stdout.write(`figure: concurrency ${concurrency}\n`);
  return tellFigures(node, jobs, seconds);
}

/** The median of what a job took from its claim to its end, less what was not ours. */
function tellFigures(node: ClaimNode, jobs: readonly PloyJob[], seconds: number): number {
  const parts = new Map<string, number[]>();
  const overheads: number[] = [];
  for (const job of jobs) {
    const steps = readSteps(node, job);
    if (steps === undefined) continue;
    for (const { name, ms } of steps) parts.set(name, [...(parts.get(name) ?? []), ms]);
    const totalMs = (job.finishedAtMs ?? 0) - (job.claimedAtMs ?? 0);
    overheads.push(totalMs - measureTogether(steps.filter(({ name }) => notOurs.includes(name))));
    for (const [name, ms] of listGaps(node, job, steps)) parts.set(name, [...(parts.get(name) ?? []), ms]);
  }
  const shown = [...parts].map(([name, values]) => `${name} ${Math.round(median(values))}`).join(', ');
  process.stdout.write(`figure: ${jobs.length} jobs in ${seconds.toFixed(1)} s; medians in ms: ${shown}\n`);
  process.stdout.write(`figure: overhead of a job, median: ${Math.round(median(overheads))} ms\n`);
  return median(overheads);
}

/** How long at least one of the steps was under way. */
function measureTogether(steps: readonly JobStep[]): number {
  let sumMs = 0;
  let untilMs = 0;
  const spans = steps.map(({ at, ms }) => ({ fromMs: Date.parse(at), toMs: Date.parse(at) + ms }));
  for (const { fromMs, toMs } of spans.sort((a, b) => a.fromMs - b.fromMs)) {
    sumMs += Math.max(0, toMs - Math.max(fromMs, untilMs));
    untilMs = Math.max(untilMs, toMs);
  }
  return sumMs;
}

/** What lies between the steps. */
function listGaps({ stateDir }: ClaimNode, job: PloyJob, steps: readonly JobStep[]): [string, number][] {
  const claim = readFileSync(join(stateDir, 'jobs-ended', job.payload.job_id, 'claim.json'), 'utf8');
  const keptMs = Date.parse(JSON.parse(claim).claimedAt);
  const step = (name: string) => steps.find((one) => one.name === name);
  const beginOf = (name: string): number => Date.parse(step(name)?.at ?? '');
  const endOf = (name: string): number => beginOf(name) + (step(name)?.ms ?? 0);
  const preparedMs = Math.max(endOf('pull'), endOf('hydrate'));
  return [
    ['| claimed to kept', keptMs - (job.claimedAtMs ?? 0)],
    ['kept to first step', beginOf('hydrate') - keptMs],
    ['prepared to create', beginOf('create') - preparedMs],
    ['created to start', beginOf('start') - endOf('create')],
    ['ended to told', (job.finishedAtMs ?? 0) - endOf('wait')],
  ];
}

/** Undefined where the job has been forgotten: 200 are kept. */
function readSteps({ stateDir }: ClaimNode, { payload }: PloyJob): readonly JobStep[] | undefined {
  try {
    const path = join(stateDir, 'jobs-ended', payload.job_id, 'progress.json');
    return JSON.parse(readFileSync(path, 'utf8')).steps;
  } catch {
    return undefined;
  }
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
