// `job run` killed in the middle of a chunk of several MiB: after it the same bytes go out under the same number, and no line is
// lost or comes twice.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { LogProgress } from '../../../src/lib/jobs/records.ts';
import { type ByteProxy, startByteProxy } from '../../support/byte-proxy.ts';
import { type JobRuns, makeJobRuns } from '../../support/job-runs.ts';
import { readLines } from '../../support/ploy/jobs.ts';
import type { PloyJob } from '../../support/ploy/model.ts';

type Pending = NonNullable<LogProgress['pending']>;

const idOf = (job: PloyJob): string => job.payload.job_id;

/**
 * About 11 MB of frames that no compression makes much smaller, as fast as they can be read; then some more, as the container goes
 * on: enough for all kills, also where a slow machine cuts the first chunk short.
 */
const command = [
  'head -c 6m /dev/urandom | base64 > /out/log; cat /out/log; sleep 1',
  'head -c 4m /dev/urandom | base64 > /out/more; cat /out/more; cat /out/more >> /out/log; rm /out/more',
].join('; ');

/**
 * How many bytes a process may send before it is killed: inside the handshake, in the first chunk near its begin, in its middle and
 * near its end, in the chunks after it. `stored`: the chunk is with the server, and its answer met nobody.
 */
const kills: readonly (number | 'stored')[] = [
  ...([100, 20_000, 700_000, 1_900_000, 3_000_000, 3_900_000, 'stored', 500_000] as const),
  ...(['stored', 4_600_000, 1_000, 'stored', 2_500_000] as const),
];

function goThrough(runs: JobRuns, proxy: ByteProxy): void {
  const config = runs.json('etc/reeve.yaml') as { jobs: { server_url: string } };
  config.jobs.server_url = `https://127.0.0.1:${proxy.port}`;
  runs.write('etc/reeve.yaml', config);
}

/** Runs the job and kills it there. False where it came to its end before. */
async function runKilled(runs: JobRuns, proxy: ByteProxy, job: PloyJob, at: number | 'stored') {
  const program = runs.start(['job', 'run', idOf(job)]);
  let isKilled = false;
  const kill = (): void => {
    isKilled = true;
    program.child.kill('SIGKILL');
  };
  if (at === 'stored') {
    const { chunkNo = -1 } = readPending(runs, job) ?? {};
    // One that is there already is answered for thrice before the next one goes out.
    const skip = job.chunks.has(chunkNo) ? 3 : 0;
    const heal = runs.ploy.faults.add({ route: 'logs', kind: 'silence', committed: true, skip });
    const count = job.chunks.size;
    const stored = runs.ploy.waitUntil('a chunk', () => job.chunks.size > count).then(kill);
    await Promise.race([stored, program.ended]);
    await program.ended;
    heal();
    stored.catch(() => {});
  } else {
    proxy.cutAfter(at, kill);
    await program.ended;
  }
  proxy.heal();
  return isKilled;
}

function readPending(runs: JobRuns, job: PloyJob): Pending | undefined {
  return (runs.record(job, 'progress.json')['logs'] as LogProgress | undefined)?.pending;
}

it('P63 P36 P62: sends the same bytes under the same number after a kill at any byte of them', {
  timeout: 600_000,
}, async () => {
  const runs = await makeJobRuns();
  const proxy = await startByteProxy(Number(new URL(runs.ploy.url).port));
  goThrough(runs, proxy);
  const job = runs.claim({ command });
  const pending: Pending[] = [];
  for (const at of kills) {
    expect(await runKilled(runs, proxy, job, at), `killed at ${at}`).toBe(true);
    const found = readPending(runs, job);
    if (found !== undefined) pending.push(found);
  }
  expect((await runs.reeve('job', 'run', idOf(job))).status).toBe(0);

  const text = readFileSync(
    join(runs.root, 'cache/jobs/runs', job.payload.id, 'artifacts', idOf(job), 'out/log'),
  );
  const lines = readLines(job);
  expect(lines.length).toBe(text.toString().split('\n').length - 1);
  expect(`${lines.join('\n')}\n` === text.toString()).toBe(true);
  expect(runs.ploy.state.violations).toEqual([]);
  // What was written down before it was sent is what is there under its number.
  const promised = pending.map(({ chunkNo, fromBytes, toBytes }) => [chunkNo, toBytes - fromBytes]);
  expect(promised).toEqual(pending.map(({ chunkNo }) => [chunkNo, job.chunks.get(chunkNo)?.bytes]));
  const numbers = new Set(pending.map(({ chunkNo }) => chunkNo));
  expect(new Set(pending.map((one) => JSON.stringify(one))).size).toBe(numbers.size);
  const largest = Math.max(...pending.map(({ fromBytes, toBytes }) => toBytes - fromBytes));
  console.log(
    `figure: ${kills.length} kills, ${job.chunks.size} chunks, ${numbers.size} of them met by a kill, the largest ${largest} bytes, ${job.repeatedChunks} sent again`,
  );
  expect([largest > 2 << 20, numbers.size > 1, job.repeatedChunks > 0]).toEqual([true, true, true]);
  expect(job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
});
