// What becomes of the end of a job, by each answer that the server may give, against the strict one.
import { describe, expect, it, onTestFinished } from 'vitest';
import type { JobsConfig } from '../../../src/lib/config/config.ts';
import { loadConfig } from '../../../src/lib/config/load.ts';
import { resolvePaths } from '../../../src/lib/config/paths.ts';
import { openControlPlane } from '../../../src/lib/control-plane/client.ts';
import type { ControlPlane } from '../../../src/lib/control-plane/control-plane.ts';
import { findJob, openJob, readJob, writeCompletion } from '../../../src/lib/jobs/book.ts';
import { type Delivery, type DeliveryMode, deliverCompletion } from '../../../src/lib/jobs/deliver.ts';
import type { JobCompletion } from '../../../src/lib/jobs/records.ts';
import type { CompletionBody } from '../../../src/lib/ploy/wire.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { type JobsMachine, makeJobsMachine } from '../../support/jobs-machine.ts';
import { claimJob, type JobOptions } from '../../support/ploy/jobs.ts';
import type { PloyJob } from '../../support/ploy/model.ts';

type Delivered = { delivery: Delivery; completion: JobCompletion };

type Node = JobsMachine & {
  /** Claimed by this node and open on it. */
  claim(options?: JobOptions): Promise<PloyJob>;
  deliver(job: PloyJob, mode: DeliveryMode, body?: CompletionBody): Promise<Delivered>;
  /** As it is on disk. */
  record(job: PloyJob): Promise<JobCompletion | undefined>;
};

async function makeNode(signal = new AbortController().signal): Promise<Node> {
  const machine = await makeJobsMachine();
  const env = { REEVE_STATE: machine.stateDir, REEVE_CACHE: `${machine.root}/cache` };
  const paths = resolvePaths({ config: `${machine.root}/etc/reeve.yaml` }, env);
  const jobs = (await loadConfig(paths, {})).jobs as JobsConfig;
  const overrides = { PLOY_NODE_BEARER_TOKEN_PATH: machine.files.token };
  const ctx = { paths, overrides, clock: systemClock, log: silentLog, signal };
  const controlPlane: ControlPlane = openControlPlane(ctx, jobs);
  onTestFinished(() => controlPlane.close());
  const about = (job: PloyJob) => ({ runId: job.payload.id, jobId: job.payload.job_id });
  const placeOf = async (job: PloyJob) => {
    const place = await findJob(ctx, job.payload.job_id);
    if (place === undefined) throw new Error('the job has no directory');
    return place;
  };
  const record = async (job: PloyJob) => (await readJob(ctx, await placeOf(job))).completion;
  return {
    ...machine,
    record,
    claim: async (options) => {
      const job = machine.ploy.queueJob(options);
      if (claimJob(machine.ploy.state, 'node-1') !== job) throw new Error('another job was claimed');
      const claimedAt = new Date().toISOString();
      await openJob(ctx, { source: 'claim', claimedAt, ...about(job), payload: job.payload });
      return job;
    },
    deliver: async (job, mode, body = success) => {
      const place = await placeOf(job);
      const completion = (await record(job)) ?? { body, decidedAt: new Date().toISOString(), attempts: 0 };
      await writeCompletion(place, completion);
      return await deliverCompletion(ctx, controlPlane, { ...about(job), mode, place, completion });
    },
  };
}

const success: CompletionBody = { status: 'Success', exit_code: 0, stats: { duration_ms: 5 } };
const modes = ['live', 'replay'] as const;
/** A job that another one waits for, without what that one would begin with. */
const unchained = { payload: { next_id: 'Job0000000000000000000next1', repo_sha_in: '' } };
const unhashed = { payload: { next_id: 'Job0000000000000000000next1' } };

describe('an end that the server refuses while the job runs there', () => {
  it.each(
    modes.flatMap((mode) => [
      [mode, 409, 4, 'repo_sha_in must match', unchained] as const,
      [mode, 400, 1, 'repo_sha_out is required', unhashed] as const,
    ]),
  )('P41 %s, by %i %i times, ends the job as an error with the reason', async (...row) => {
    const [mode, status, times, words, options] = row;
    const node = await makeNode();
    const job = await node.claim(options);
    const { delivery } = await node.deliver(job, mode);
    expect(delivery).toMatchObject({ kind: 'settled', how: 'acknowledged', attempts: times + 1 });
    expect(job.refusedCompletions.map((one) => one.status)).toEqual(Array(times).fill(status));
    expect([job.status, job.completions]).toMatchObject(['Error', [{ status: 'Error', exit_code: -1 }]]);
    expect(job.completions[0]?.stats?.error).toContain(words);
    const kept = await node.record(job);
    expect(kept).toMatchObject({
      ...{ body: { status: 'Error' }, refused: { body: success }, attempts: times + 1 },
    });
    expect(job.events.map(({ level }) => level)).toEqual(['warn']);
  });

  it.each(modes)('P41 %s, by a conflict of the moment, keeps its own end', async (mode) => {
    const node = await makeNode();
    const job = await node.claim();
    node.ploy.faults.add({ route: 'complete', kind: 'answer', status: 409, times: 3 });
    const { delivery } = await node.deliver(job, mode);
    expect(delivery).toMatchObject({ kind: 'settled', how: 'acknowledged', attempts: 4 });
    expect([job.completions, job.events]).toEqual([[success], []]);
  });

  it.each(modes.flatMap((mode) => [[mode, 503] as const, [mode, 409] as const]))(
    'P41 %s, by a conflict while its status is answered by %i, is not lost by it',
    async (mode, status) => {
      const node = await makeNode();
      const job = await node.claim();
      node.ploy.faults.add({ route: 'complete', kind: 'answer', status: 409, times: 1 });
      node.ploy.faults.add({ route: 'status', kind: 'answer', status, times: 1 });
      expect((await node.deliver(job, mode)).delivery).toMatchObject({ how: 'acknowledged', attempts: 2 });
      expect(job.completions).toEqual([success]);
    },
  );

  it('P41 keeps the error that takes its place on disk before it is sent, and sends no third one', async () => {
    const node = await makeNode();
    const job = await node.claim(unhashed);
    node.ploy.faults.add({ route: 'complete', kind: 'answer', status: 503, skip: 1, times: 4 });
    expect((await node.deliver(job, 'live')).delivery).toMatchObject({ kind: 'undelivered', attempts: 5 });
    expect(await node.record(job)).toMatchObject({ body: { status: 'Error' }, refused: { body: success } });
    node.ploy.faults.add({ route: 'complete', kind: 'answer', status: 413, text: 'too large', times: 1 });
    const { delivery } = await node.deliver(job, 'replay');
    expect(delivery).toMatchObject({ kind: 'settled', how: 'refused', answer: 'too large', attempts: 1 });
    expect(node.ploy.requestsTo('complete')).toHaveLength(6);
  });
});

describe('an end that the server does not take', () => {
  it.each(modes.flatMap((mode) => (['Queued', 'Created'] as const).map((status) => [mode, status] as const)))(
    'P41 %s, as it believes the job to be %s, is settled and not sent again',
    async (mode, status) => {
      const node = await makeNode();
      const job = await node.claim();
      node.ploy.setStatus(job.payload.job_id, status);
      const { delivery } = await node.deliver(job, mode);
      expect(delivery).toMatchObject({ kind: 'settled', how: 'refused', attempts: 1 });
      expect((await node.record(job))?.settled?.answer).toContain(`job status is ${status}`);
      expect(job.events.map(({ level }) => level)).toEqual(['warn']);
      expect((await node.deliver(job, mode)).delivery).toMatchObject({ kind: 'settled', attempts: 0 });
    },
  );

  it.each([
    ['a job that is none', 404, 'job not found', 'none'],
    ['a job of another node', 403, 'job not assigned to this node', 'other'],
  ])('P61 of %s is settled after one attempt', async (_, status, answer, where) => {
    const node = await makeNode();
    const job = await node.claim();
    if (where === 'none') node.ploy.state.jobs.delete(job.payload.job_id);
    else job.nodeId = 'node-2';
    const { delivery } = await node.deliver(job, 'live');
    expect(delivery).toMatchObject({ kind: 'settled', how: 'refused', attempts: 1, answer });
    expect(node.ploy.requestsTo('complete').map((request) => request.status)).toEqual([status]);
  });

  it.each(
    modes.flatMap((mode) => [
      [mode, 401, 'token expired'] as const,
      [mode, 403, 'forbidden'] as const,
      [mode, 408, 'timeout'] as const,
      [mode, 429, 'slow down'] as const,
    ]),
  )('P61 %s with %i is kept after one attempt and taken later', async (mode, status, text) => {
    const node = await makeNode();
    const job = await node.claim();
    const heal = node.ploy.faults.add({ route: 'complete', kind: 'answer', status, text });
    const { delivery } = await node.deliver(job, mode);
    expect(delivery).toMatchObject({
      kind: 'undelivered',
      attempts: 1,
      reason: expect.stringContaining(text),
    });
    expect(await node.record(job)).toMatchObject({ body: success, lastError: expect.stringContaining(text) });
    heal();
    expect((await node.deliver(job, 'replay')).delivery).toMatchObject({ how: 'acknowledged' });
    expect(job.completions).toEqual([success]);
  });

  it('P61 is sent four times while the server has trouble, and kept', async () => {
    const node = await makeNode();
    const job = await node.claim();
    node.ploy.faults.add({ route: 'complete', kind: 'answer', status: 500 });
    expect((await node.deliver(job, 'live')).delivery).toMatchObject({ kind: 'undelivered', attempts: 4 });
    expect(node.ploy.requestsTo('complete')).toHaveLength(4);
  });
});

describe('409', () => {
  it.each([
    ['live', 'undelivered'],
    ['replay', 'settled'],
  ] as const)('P40 P41 %s, while nobody says what the job is, leaves it %s', async (mode, kind) => {
    const node = await makeNode();
    const job = await node.claim();
    node.ploy.setStatus(job.payload.job_id, 'Cancelled');
    const heal = node.ploy.faults.add({ route: 'status', kind: 'answer', status: 503 });
    expect((await node.deliver(job, mode)).delivery).toMatchObject({ kind, attempts: 4 });
    expect(node.ploy.requestsTo('complete')).toHaveLength(4);
    heal();
    expect((await node.deliver(job, 'replay')).delivery).toMatchObject({ how: 'already-terminal' });
  });

  it.each([
    ['live', 1],
    ['replay', 0],
  ] as const)('P40 P41 %s, of a job that has ended, is told %i times', async (mode, events) => {
    const node = await makeNode();
    const job = await node.claim();
    node.ploy.setStatus(job.payload.job_id, 'Cancelled');
    const { delivery } = await node.deliver(job, mode);
    expect(delivery).toMatchObject({ kind: 'settled', how: 'already-terminal' });
    expect([job.events.length, job.completions]).toEqual([events, []]);
  });

  it('P61 after an attempt of ours that was taken without an answer is a success, and not told', async () => {
    const node = await makeNode();
    const job = await node.claim();
    node.ploy.faults.add({ route: 'complete', kind: 'reset', committed: true, times: 1 });
    const { delivery } = await node.deliver(job, 'live');
    expect(delivery).toMatchObject({ kind: 'settled', how: 'acknowledged', attempts: 2 });
    expect([job.completions, job.events]).toEqual([[success], []]);
  });
});
