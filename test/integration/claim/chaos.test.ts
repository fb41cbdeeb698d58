// Every process of reeve may be killed at any moment and the server may fail one request in ten: no job runs twice, none is told
// two ends, no line is lost. The one loss that nobody could know of is a claim whose answer met a killed process; it is counted.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type ClaimNode, makeClaimNode } from '../../support/claim-node.ts';
import { terminalStatuses } from '../../support/ploy/jobs.ts';
import type { PloyJob } from '../../support/ploy/model.ts';
import type { Program } from '../../support/programs.ts';
import { createRandom, type Random } from '../../support/random.ts';

const count = Number(process.env['REEVE_JOBS'] ?? 40);
const seed = Number(process.env['REEVE_SEED'] ?? 1);
const limitMs = 120_000 + count * 3_000;

it('R30 P61 P63 loses no job and runs none twice under kills every second and a server that fails', {
  timeout: limitMs + 60_000,
}, async () => {
  const node = await makeClaimNode({ concurrency: 4, seed });
  addFaults(node);
  const jobs = Array.from({ length: count }, () =>
    node.ploy.queueJob({ command: 'cat /proc/sys/kernel/random/uuid; echo >> /share/count; echo last' }),
  );
  const kills = await runUntilOver(node, jobs, createRandom(seed));
  node.ploy.faults.clear();
  for (let tries = 0; tries < 5 && node.openJobs().length > 0; tries += 1) {
    await node.reeve('claim', '--window', '0');
  }

  const kept = new Set([...node.openJobs(), ...node.endedJobs()]);
  const lost = jobs.filter((job) => !isOver(job) && !kept.has(job.payload.job_id));
  process.stdout.write(
    `figure: chaos: ${count} jobs, seed ${seed}, ${kills.claim} claims and ${kills.job} jobs killed, ` +
      `${lost.length} lost with a claim's answer\n` +
      `figure: faults met: ${JSON.stringify(node.ploy.faults.met)}\n`,
  );
  const others = jobs.filter((job) => !lost.includes(job));
  expect(lost.length).toBeLessThanOrEqual(kills.claim);
  expect(others.filter((job) => !isOver(job)).map(describeJob)).toEqual([]);
  expect(others.flatMap(findDamage)).toEqual([]);
  expect(others.filter((job) => countRuns(node, job) !== 1).map(describeJob)).toEqual([]);
  expect(node.ploy.state.violations).toEqual([]);
  expect(node.openJobs()).toEqual([]);
  expect(await node.containers()).toEqual([]);
});

function addFaults({ ploy: { faults } }: ClaimNode): void {
  faults.add({ route: 'any', kind: 'answer', status: 503, oneIn: 30 });
  faults.add({ route: 'any', kind: 'reset', oneIn: 30 });
  faults.add({ route: 'claim', kind: 'answer', status: 500, oneIn: 30 });
  faults.add({ route: 'complete', kind: 'answer', status: 409, oneIn: 30 });
  faults.add({ route: 'complete', kind: 'reset', committed: true, oneIn: 30 });
  faults.add({ route: 'logs', kind: 'reset', committed: true, oneIn: 30 });
  faults.add({ route: 'any', kind: 'silence', oneIn: 200 });
}

function isOver({ status }: PloyJob): boolean {
  return terminalStatuses.includes(status);
}

function describeJob({ payload, status, history, refusedCompletions }: PloyJob): string {
  return `${payload.job_id} ${status} ${history.map((one) => one.status)} ${JSON.stringify(refusedCompletions)}`;
}

/** Exactly one end, a good one, and each line of the one run at least once. */
function findDamage(job: PloyJob): string[] {
  const about = describeJob(job);
  const ends = job.history.filter(({ status }) => terminalStatuses.includes(status)).length;
  const lines = [...job.chunks.values()].flatMap(({ frames }) => frames ?? []).map(({ line }) => line);
  const marks = new Set(lines.filter((line) => /^[0-9a-f-]{36}$/.test(line)));
  return [
    ...(ends === 1 && job.completions.length === 1 ? [] : [`${about}: ${ends} ends`]),
    ...(job.status === 'Success' ? [] : [`${about}: ${JSON.stringify(job.completions)}`]),
    ...(marks.size === 1 && lines.includes('last') ? [] : [`${about}: printed ${JSON.stringify(lines)}`]),
  ];
}

function countRuns({ root }: ClaimNode, { payload }: PloyJob): number {
  const path = join(root, 'work/runs', payload.id, 'artifacts/shared/count');
  return readFileSync(path, 'utf8').split('\n').length - 1;
}

type Kills = { claim: number; job: number };

async function runUntilOver(node: ClaimNode, jobs: readonly PloyJob[], random: Random): Promise<Kills> {
  const kills = { claim: 0, job: 0 };
  const endsAtMs = Date.now() + limitMs;
  let current: Program | undefined;
  const timer = setInterval(() => killOne(node, current, random, kills), 1_000);
  try {
    while (Date.now() < endsAtMs && !isAllOver(node, jobs)) {
      current = node.start('claim', '--window', '5');
      await current.ended;
    }
  } finally {
    clearInterval(timer);
  }
  return kills;
}

/** Nothing is queued, and whatever else is not over has no records here. */
function isAllOver(node: ClaimNode, jobs: readonly PloyJob[]): boolean {
  return node.openJobs().length === 0 && jobs.every((job) => job.status === 'Running' || isOver(job));
}

function killOne(node: ClaimNode, current: Program | undefined, random: Random, kills: Kills): void {
  const runners = findRunners(node);
  const all = [
    ...(current === undefined || current.child.exitCode !== null ? [] : [current.pid]),
    ...runners,
  ];
  if (all.length === 0) return;
  const pid = random.pick(all);
  try {
    process.kill(pid, 'SIGKILL');
    kills[pid === current?.pid ? 'claim' : 'job'] += 1;
  } catch {
    // It has just ended by itself.
  }
}

/**
 * Of this test alone: its own directory is in their arguments. A program that one of them starts has the same arguments for a
 * moment, and is none.
 */
function findRunners(node: ClaimNode): number[] {
  const found = findWithWords(node);
  return found.filter((pid) => !found.includes(readParent(pid)));
}

function readParent(pid: number): number {
  try {
    return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  } catch {
    return 0;
  }
}

function findWithWords({ root }: ClaimNode): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        return words.includes('\0job\0run\0') && words.includes(root);
      } catch {
        return false;
      }
    });
}
