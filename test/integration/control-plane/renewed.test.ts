// Who we are and whom we trust, put in place anew while a client is in use: the next request goes by what lies there now.
import { copyFileSync, renameSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { ClaimPayload } from '../../../src/lib/ploy/wire.ts';
import { openMachinePlane } from '../../support/control-plane.ts';
import { type JobRuns, makeJobRuns } from '../../support/job-runs.ts';
import { type JobsMachine, makeJobsMachine, writeSecret } from '../../support/jobs-machine.ts';
import { askDocker } from '../../support/node.ts';
import { readLines } from '../../support/ploy/jobs.ts';
import type { PloyJob } from '../../support/ploy/model.ts';
import { watchStandstill } from '../../support/standstill.ts';

/** As a renewal does: nobody sees half a file. */
function replaceToken({ files }: JobsMachine, token: string): void {
  writeSecret(`${files.token}.new`, token);
  renameSync(`${files.token}.new`, files.token);
}

describe('a client of the server in use', () => {
  it.each([
    ['authority', (machine: JobsMachine) => copyFileSync(machine.pki.foreign.ca.cert, machine.files.ca)],
    [
      'certificate that the server does not trust',
      (machine: JobsMachine) => {
        copyFileSync(machine.pki.foreign.node.cert, machine.files.cert);
        copyFileSync(machine.pki.foreign.node.key, machine.files.key);
      },
    ],
    [
      'certificate that has run out',
      (machine: JobsMachine) => {
        const { cert, key } = machine.pki.expired();
        copyFileSync(cert, machine.files.cert);
        copyFileSync(key, machine.files.key);
      },
    ],
  ])('P14 P15: takes up another %s once it is in place, without being opened anew', async (_, spoil) => {
    const machine = await makeJobsMachine();
    spoil(machine);
    const plane = await openMachinePlane(machine);
    await expect(plane.claim()).rejects.toMatchObject({ status: undefined, isTransient: true });
    await expect(plane.claim()).rejects.toMatchObject({ status: undefined, isTransient: true });
    copyFileSync(machine.pki.ca.cert, machine.files.ca);
    copyFileSync(machine.pki.node.cert, machine.files.cert);
    copyFileSync(machine.pki.node.key, machine.files.key);
    // The one that fails finds the new files; it is not sent again by itself, as it may have been done.
    await expect(plane.claim()).rejects.toMatchObject({ isTransient: true });
    expect(await plane.claim()).toBeUndefined();
    expect(machine.ploy.requestsTo('claim')).toHaveLength(1);
  });

  it('P80: sends what was refused once more with the new token, and what is under way keeps its answer', async () => {
    const machine = await makeJobsMachine();
    const plane = await openMachinePlane(machine);
    machine.ploy.queueJob();
    const { job_id: jobId, id: runId } = (await plane.claim()) as ClaimPayload;
    machine.ploy.faults.add({ route: 'events', kind: 'slow', ms: 1_500, times: 1 });
    const slow = plane.sendEvents(runId, [{ job_id: jobId, level: 'info', message: 'hello' }]);
    await expect.poll(() => machine.ploy.requestsTo('events').length, { interval: 10 }).toBe(1);
    machine.ploy.state.tokens.add('a-new-token');
    replaceToken(machine, 'a-new-token');
    machine.ploy.faults.add({ route: 'claim', kind: 'answer', status: 401, times: 2 });
    // Of two at the same moment only the first opens a client.
    expect(await Promise.all([plane.claim(), plane.claim()])).toEqual([undefined, undefined]);
    expect(
      machine.ploy.requestsTo('claim').map(({ status, headers }) => [status, headers['authorization']]),
    ).toEqual([
      [200, `Bearer ${machine.ploy.token}`],
      [401, `Bearer ${machine.ploy.token}`],
      [401, `Bearer ${machine.ploy.token}`],
      [204, 'Bearer a-new-token'],
      [204, 'Bearer a-new-token'],
    ]);
    await slow;
    expect(machine.ploy.job(jobId).events).toHaveLength(1);
  });

  it('P80: is refused once, not in a loop, where the token is the same', async () => {
    const machine = await makeJobsMachine();
    const plane = await openMachinePlane(machine);
    machine.ploy.faults.add({ route: 'claim', kind: 'answer', status: 401 });
    await expect(plane.claim()).rejects.toMatchObject({ status: 401 });
    replaceToken(machine, 'another-bad-one');
    await expect(plane.claim()).rejects.toMatchObject({ status: 401 });
    expect(machine.ploy.requestsTo('claim')).toHaveLength(3);
  });
});

async function startRunning(runs: JobRuns, job: PloyJob) {
  const program = runs.start(['job', 'run', job.payload.job_id]);
  await runs.ploy.waitUntil('its first line', () => job.chunks.size > 0);
  const [container = ''] = await runs.containers(job);
  return { program, container };
}

describe('a job that runs for long', () => {
  const command = 'echo begun; while [ ! -e /out/go ]; do sleep 0.1; done; echo late';

  it.each([
    ['the token', (runs: JobRuns) => replaceToken(runs, 'a-new-token')],
    [
      'token and certificate',
      (runs: JobRuns) => {
        const { cert, key } = runs.pki.issueNode('node-1');
        copyFileSync(key, runs.files.key);
        copyFileSync(cert, runs.files.cert);
        replaceToken(runs, 'a-new-token');
      },
    ],
  ])('P36 P37 P80: tells its log and its end with %s that is put in place meanwhile', async (_, renew) => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command });
    const { program, container } = await startRunning(runs, job);
    runs.ploy.state.tokens.add('a-new-token');
    renew(runs);
    runs.ploy.state.tokens.delete(runs.ploy.token);
    // Connections that are kept know nothing of it.
    await runs.ploy.goAway();
    await runs.ploy.comeBack();
    await askDocker(runs.socket, ['exec', container, 'touch', '/out/go']);
    expect((await program.ended).status).toBe(0);
    expect(readLines(job)).toEqual(['begun', 'late']);
    expect(job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
    expect([job.events, runs.isClosed(job)]).toEqual([[], true]);
    expect(runs.ploy.requestsTo('complete').at(-1)?.headers['authorization']).toBe('Bearer a-new-token');
  });

  it('P60: is cancelled all the same after its token was renewed', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command });
    const { program } = await startRunning(runs, job);
    runs.ploy.state.tokens.add('a-new-token');
    replaceToken(runs, 'a-new-token');
    runs.ploy.state.tokens.delete(runs.ploy.token);
    const still = watchStandstill();
    const askedAtMs = Date.now();
    runs.ploy.cancelJob(job.payload.job_id);
    expect((await program.ended).status).toBe(0);
    const endedAtMs = Date.now();
    expect(endedAtMs - askedAtMs - still.within(askedAtMs, endedAtMs)).toBeLessThan(10_000);
    expect(await runs.containers(job)).toEqual([]);
  });

  it('P80: has its end delivered by a later run where the token came too late', async () => {
    const runs = await makeJobRuns();
    const job = runs.claim({ command });
    const { program, container } = await startRunning(runs, job);
    await runs.ploy.goAway();
    await askDocker(runs.socket, ['exec', container, 'touch', '/out/go']);
    await askDocker(runs.socket, ['wait', container]);
    program.child.kill('SIGTERM');
    expect((await program.ended).status).toBe(143);
    runs.ploy.state.tokens.clear();
    runs.ploy.state.tokens.add('a-new-token');
    await runs.ploy.comeBack();
    replaceToken(runs, 'a-new-token');
    expect((await runs.reeve('job', 'run', job.payload.job_id)).status).toBe(0);
    expect(readLines(job)).toEqual(['begun', 'late']);
    expect(job.completions).toMatchObject([{ status: 'Success', exit_code: 0 }]);
  });
});
