// Every process of reeve may be killed at any moment and the server fails one request in ten: no job runs twice, none is told two
// ends, no line is lost. The one loss that the protocol has no remedy for is a claim whose answer met a process that was killed
// before it could keep it: each is proved to be that, from the server's books and the node's disk, and counted.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { until } from '../../support/balanced.ts';
import { type Kills, listKnown, runAndKill } from '../../support/claim-killer.ts';
import { type ClaimNode, makeClaimNode } from '../../support/claim-node.ts';
import type { PloyFaultMix } from '../../support/ploy/faults.ts';
import { terminalStatuses } from '../../support/ploy/jobs.ts';
import {
  type ClaimLife,
  type FaultRow,
  findUndelivered,
  isOver,
  listFaults,
  listLines,
  tableFaults,
  type Undelivered,
} from '../../support/ploy/ledger.ts';
import type { PloyJob } from '../../support/ploy/model.ts';
import { createRandom } from '../../support/random.ts';
import { type Standstill, watchStandstill } from '../../support/standstill.ts';

const count = Number(process.env['REEVE_JOBS'] ?? 60);
const seed = Number(process.env['REEVE_SEED'] ?? 1);
/** From the server's answer to the disk, on a machine with more to do than it can. */
const longestMs = 500;
const limitMs = 180_000 + count * 4_000;

/** Of 20 faults, so many of each kind. On a claim only those that come before it is committed. */
const mix: PloyFaultMix = {
  oneIn: 10,
  kinds: [
    { kind: 'answer', status: 500, weight: 2 },
    { kind: 'answer', status: 503, weight: 2 },
    { kind: 'answer', status: 502, committed: true, weight: 2 },
    { kind: 'answer', status: 409, weight: 4 },
    { kind: 'reset', weight: 3 },
    { kind: 'reset', committed: true, weight: 2 },
    { kind: 'cut', weight: 2 },
    { kind: 'silence', weight: 2 },
    { kind: 'silence', committed: true, weight: 1 },
  ],
};

it('R30 P61 P63 loses no job and runs none twice under kills every second and a server that fails', {
  timeout: limitMs + 120_000,
}, async () => {
  const node = await makeClaimNode({ concurrency: 4, seed });
  const { state, faults } = node.ploy;
  faults.mix(mix);
  const jobs = Array.from({ length: count }, (_, index) => node.ploy.queueJob(buildJob(index)));
  const still = watchStandstill();
  const startedAtMs = Date.now();
  const { lives, kills } = await runAndKill(node, {
    random: createRandom(seed),
    windowSeconds: 10,
    endsAtMs: startedAtMs + limitMs,
    isOver: () => isAllOver(node, jobs),
  });
  const seconds = (Date.now() - startedAtMs) / 1000;
  const rows = tableFaults(faults);
  faults.clear();
  for (let tries = 0; tries < 5 && !isAllOver(node, jobs); tries += 1) {
    await node.reeve('claim', '--window', '0');
  }

  const missing = jobs.filter((job) => !isOver(job));
  const undelivered = findUndelivered(state, lives);
  tellFigures({ jobs, kills, lives, seconds, undelivered, rows });
  expect(missing.map(describeJob)).toEqual(undelivered.map(({ jobId }) => describeJob(node.ploy.job(jobId))));
  expect(undelivered.filter((one) => waitedMs(one) - stoodStillMs(still, one) > longestMs)).toEqual([]);
  // One question at a time: a kill cannot lose two.
  expect(new Set(undelivered.map(({ life }) => life)).size).toBe(undelivered.length);
  expect(jobs.filter(isOver).flatMap((job) => findDamage(node, job))).toEqual([]);
  expect(jobs.flatMap(findTwoContents)).toEqual([]);
  expect(state.violations).toEqual([]);
  expect(rows.flatMap(judgeRow)).toEqual([]);
  expect(node.openJobs()).toEqual([]);
  expect(await node.containers()).toEqual([]);
});

it('R30 knows from both sides which job went with a claim that was killed, and goes on without it', async () => {
  const node = await makeClaimNode({ concurrency: 2 });
  const { ploy, endedJobs } = node;
  const [lost, kept] = [ploy.queueJob({ command: 'true' }), ploy.queueJob({ command: 'true' })];
  const lives = [
    // Stopped while the server takes its time: its answer finds nobody who could keep it.
    await liveAndDie(node, { slowMs: 2_000, isTime: () => lost.status === 'Running' }),
    // Killed as soon as anything is on the disk: the job is not lost.
    await liveAndDie(node, { slowMs: 0, isTime: () => listKnown(node).size > 0 }),
  ];
  expect(findUndelivered(ploy.state, lives)).toMatchObject([{ jobId: lost.payload.job_id, life: lives[0] }]);
  expect((await node.reeve('claim', '--window', '0')).status).toBe(0);
  // By a process that outlived its claimer, if that had started one.
  await until(() => endedJobs().length > 0);
  expect([lost.status, kept.status]).toEqual(['Running', 'Success']);
  expect(endedJobs()).toEqual([kept.payload.job_id]);
  expect(findUndelivered(ploy.state, lives)).toMatchObject([{ jobId: lost.payload.job_id, life: lives[0] }]);
});

async function liveAndDie(
  node: ClaimNode,
  { slowMs, isTime }: { slowMs: number; isTime(): boolean },
): Promise<ClaimLife> {
  if (slowMs > 0) node.ploy.faults.add({ route: 'claim', kind: 'slow', ms: slowMs, times: 1 });
  const asked = node.ploy.requestsTo('claim').length;
  const startedAtMs = Date.now();
  const { child } = node.start('claim', '--window', '30');
  const exited = new Promise((resolve) => child.once('exit', resolve));
  await until(() => node.ploy.requestsTo('claim').length > asked);
  if (slowMs > 0) child.kill('SIGSTOP');
  await until(isTime);
  const killedAtMs = Date.now();
  child.kill('SIGKILL');
  await exited;
  return { startedAtMs, endedAtMs: Date.now(), killedAtMs, knownAtEnd: listKnown(node) };
}

/** Nothing is queued, and of whatever else is not over there is nothing here. */
function isAllOver(node: ClaimNode, jobs: readonly PloyJob[]): boolean {
  const known = listKnown(node);
  const isLost = ({ status, payload }: PloyJob): boolean =>
    status === 'Running' && !known.has(payload.job_id);
  return node.openJobs().length === 0 && jobs.every((job) => isOver(job) || isLost(job));
}

/** A line says which run of the job has printed it. Every fifth job takes its time, every third leaves a diff. */
function buildJob(index: number): { command: string } {
  const isSlow = index % 5 === 0;
  const lines = [
    'id=$(cat /proc/sys/kernel/random/uuid)',
    'echo $id >> /share/runs',
    ...(index % 3 === 0 ? ['echo $id > /workspace/new.txt'] : []),
    'i=0',
    `while [ $i -lt ${lineCount(index)} ]; do`,
    'echo "$id $i"; echo "$id $i" >&2; i=$((i+1))',
    ...(isSlow ? ['[ $((i % 10)) -ne 0 ] || sleep 0.5'] : []),
    'done',
  ];
  return { command: lines.join('\n') };
}

function lineCount(index: number): number {
  return index % 5 === 0 ? 100 : 30;
}

function describeJob({ payload, status, history, refusedCompletions }: PloyJob): string {
  return `${payload.job_id} ${status} ${history.map((one) => one.status)} ${JSON.stringify(refusedCompletions)}`;
}

/** Exactly one end, which is a good one unless the server refused what the job needs; it ran once, and each line is there. */
function findDamage(node: ClaimNode, job: PloyJob): string[] {
  const about = describeJob(job);
  const ends = job.history.filter(({ status }) => terminalStatuses.includes(status)).length;
  const met = listFaults(node.ploy.state, job);
  const isRefused = met.some((fault) => fault === 'snapshot answer 409' || fault === 'diff answer 409');
  const isGood = job.status === 'Success' || (job.status === 'Error' && isRefused);
  const [run, ...others] = readRuns(node, job);
  const isRunMissing = run === undefined && !met.includes('snapshot answer 409');
  const wanted =
    run === undefined
      ? []
      : Array.from({ length: lineCount(indexOf(node, job)) }, (_, line) => `${run} ${line}`);
  const isWhole = (['stdout', 'stderr'] as const).every(
    (stream) => listLines(job, stream).join('\n') === wanted.join('\n'),
  );
  return [
    ...(ends === 1 && job.completions.length === 1 ? [] : [`${about}: ${ends} ends`]),
    ...(isGood ? [] : [`${about}: ${JSON.stringify(job.completions)} after ${met}`]),
    ...(isRunMissing || others.length > 0 ? [`${about}: it ran ${others.length + 1} times`] : []),
    ...(isWhole
      ? []
      : [`${about}: printed ${listLines(job, 'stdout').length} of ${wanted.length} after ${met}`]),
  ];
}

/** Among all that was sent, whether the server took it or not. */
function findTwoContents({ payload, sentChunks }: PloyJob): string[] {
  const numbers = [...sentChunks].filter(([, hashes]) => hashes.size > 1);
  return numbers.map(([chunkNo]) => `chunk ${chunkNo} of ${payload.job_id}`);
}

function indexOf({ ploy }: ClaimNode, job: PloyJob): number {
  return [...ploy.state.jobs.keys()].indexOf(job.payload.job_id);
}

/** What each run of the job has called itself. */
function readRuns({ root }: ClaimNode, { payload }: PloyJob): string[] {
  try {
    const text = readFileSync(join(root, 'work/runs', payload.id, 'artifacts/shared/runs'), 'utf8');
    return text.trim().split('\n');
  } catch {
    return [];
  }
}

/** One in ten, as far as chance allows: five standard deviations. */
function judgeRow({ route, requests, faults, kinds }: FaultRow): string[] {
  const share = 1 / mix.oneIn;
  const slack = 5 * Math.sqrt(requests * share * (1 - share)) + 1;
  const isCommittedClaim = route === 'claim' && Object.keys(kinds).some((kind) => /after|cut/.test(kind));
  return [
    ...(Math.abs(faults - requests * share) > slack ? [`${route}: ${faults} faults of ${requests}`] : []),
    ...(isCommittedClaim ? [`claims: ${JSON.stringify(kinds)}`] : []),
  ];
}

/** How long an answer had not been kept when its process was killed; negative where it came later than that. */
function waitedMs({ life, request }: Undelivered): number {
  return (life.killedAtMs ?? 0) - request.atMs;
}

function stoodStillMs(still: Standstill, { life, request }: Undelivered): number {
  return still.within(request.atMs, life.killedAtMs ?? 0);
}

type Figures = {
  jobs: readonly PloyJob[];
  kills: Kills;
  lives: readonly ClaimLife[];
  seconds: number;
  undelivered: readonly Undelivered[];
  rows: readonly FaultRow[];
};

function tellFigures({ jobs, kills, lives, seconds, undelivered, rows }: Figures): void {
  const tell = (...cells: (string | number)[]): void =>
    void process.stdout.write(`figure: | ${cells.join(' | ')} |\n`);
  const statuses = new Map<string, number>();
  for (const { status } of jobs) statuses.set(status, (statuses.get(status) ?? 0) + 1);
  const chunks = jobs.reduce((sum, { sentChunks }) => sum + sentChunks.size, 0);
  const repeated = jobs.reduce((sum, job) => sum + job.repeatedChunks, 0);
  const twoContents = jobs.flatMap(findTwoContents).length;
  tell(
    'chaos',
    `${count} jobs`,
    `seed ${seed}`,
    `${seconds.toFixed(0)} s`,
    ...[...statuses].map(([status, times]) => `${status} ${times}`),
  );
  tell('kills', `claim ${kills.claim}`, `job run ${kills.job}`, `claims started ${lives.length}`);
  tell(
    'answers to claims lost with a killed process',
    undelivered.length,
    'ms from each to its kill',
    ...undelivered.map(waitedMs),
  );
  tell(
    'chunks',
    chunks,
    'sent again to a number that was taken',
    repeated,
    'numbers with two contents',
    twoContents,
  );
  for (const { route, requests, faults, kinds } of [...rows, sumRows(rows)]) {
    const share = `${((100 * faults) / requests).toFixed(1)} %`;
    const list = Object.entries(kinds)
      .sort()
      .map(([kind, times]) => `${kind} ${times}`)
      .join(', ');
    tell('faults', route, `${faults} of ${requests}`, share, list);
  }
}

function sumRows(rows: readonly FaultRow[]): FaultRow {
  const kinds: Record<string, number> = {};
  for (const row of rows)
    for (const [kind, times] of Object.entries(row.kinds)) kinds[kind] = (kinds[kind] ?? 0) + times;
  const sum = (field: 'requests' | 'faults'): number => rows.reduce((total, row) => total + row[field], 0);
  return { route: 'all', requests: sum('requests'), faults: sum('faults'), kinds };
}
