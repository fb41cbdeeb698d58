// Every request to ploy's server as it goes out, against the strict one over mutual TLS.

import { buffer } from 'node:stream/consumers';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { ClaimPayload } from '../../../src/lib/ploy/wire.ts';
import { openMachinePlane } from '../../support/control-plane.ts';
import { makeJobsMachine, writeSecret } from '../../support/jobs-machine.ts';

describe('the requests to the server', () => {
  it('P46, P47, P48, P80: are taken by it, one after another, over one connection with our names in each', async () => {
    const machine = await makeJobsMachine();
    const plane = await openMachinePlane(machine);
    expect(await plane.claim()).toBeUndefined();
    machine.ploy.queueJob();
    const { job_id: jobId, id: runId } = (await plane.claim()) as ClaimPayload;
    expect(await plane.fetchJobStatus(jobId)).toBe('Running');
    const gzip = gzipSync(`${JSON.stringify({ stream: 'stdout', line: 'hello' })}\n`);
    await plane.uploadLogs({ runId, jobId, chunkNo: 0, gzip });
    await plane.sendEvents(runId, [{ job_id: jobId, level: 'info', message: 'hello' }]);
    const summary = {
      job_type: 'mig',
      exit_code: 0,
      files_changed: 0,
      lines_added: 0,
      lines_removed: 0,
    } as const;
    await plane.uploadDiff({ runId, jobId, gzip: gzipSync('diff'), summary });
    expect(gunzipSync(await buffer(await plane.fetchSnapshot(runId))).length).toBeGreaterThan(0);
    await plane.complete(jobId, { status: 'Success', exit_code: 0 });
    await expect(plane.complete(jobId, { status: 'Success', exit_code: 0 })).rejects.toMatchObject({
      ...{ status: 409, isTransient: false },
    });
    expect(machine.ploy.state.violations).toEqual([]);
    expect(machine.ploy.connections.accepted).toBe(1);
    for (const { headers } of machine.ploy.state.requests) {
      expect(headers['authorization']).toBe(`Bearer ${machine.ploy.token}`);
      expect(headers['ploy_node_uuid']).toBe('node-1');
    }
  });

  it("R28: carry no text that the server's database would refuse the whole for", async () => {
    const machine = await makeJobsMachine();
    const plane = await openMachinePlane(machine);
    const job = machine.ploy.queueJob({ payload: { job_type: 'pre_gate' } });
    const { job_id: jobId, id: runId } = (await plane.claim()) as ClaimPayload;
    const message = 'it said "\0" and \ud83d, 😀 and \\u0000';
    await plane.sendEvents(runId, [{ job_id: jobId, level: 'info', message, meta: { 'a\0': ['\0'] } }]);
    const [event] = job.events;
    expect(event).toMatchObject({
      message: 'it said "\ufffd" and \ufffd, 😀 and \\u0000',
      meta: { 'a\ufffd': ['\ufffd'] },
    });
    await plane.saveSbom(jobId, [{ package: 'a\0', version: '1' }]);
    expect(job.packages).toEqual([{ package: 'a\ufffd', version: '1' }]);
    const details = { interfaces: { 'et\ud800h0': { rx_bytes: 1 } } };
    await plane.sendDiagnostics({ component: 'node', status: 'error', last_error: '\0', details });
    expect(machine.ploy.state.nodes.get('node-1')?.diagnostics).toMatchObject([
      { last_error: '\ufffd', details: { interfaces: { 'et\ufffdh0': { rx_bytes: 1 } } } },
    ]);
  });

  it('P61: tell a server in trouble from one that refuses, in its own words', async () => {
    const machine = await makeJobsMachine();
    const plane = await openMachinePlane(machine);
    machine.ploy.faults.add({
      kind: 'answer',
      status: 500,
      text: 'database is away',
      route: 'claim',
      times: 1,
    });
    await expect(plane.claim()).rejects.toMatchObject({
      ...{ status: 500, isTransient: true, answer: 'database is away' },
      message: 'cannot claim a job: the server answered 500: database is away',
    });
    machine.ploy.faults.add({
      kind: 'answer',
      status: 404,
      text: '{"error":"unknown node"}',
      route: 'claim',
      times: 1,
    });
    await expect(plane.claim()).rejects.toMatchObject({
      status: 404,
      isTransient: false,
      answer: 'unknown node',
    });
    machine.ploy.faults.add({ kind: 'reset', route: 'claim', times: 1 });
    await expect(plane.claim()).rejects.toMatchObject({ status: undefined, isTransient: true });
  });

  it('are sent with a new token where the old one is no longer known', async () => {
    const machine = await makeJobsMachine();
    const plane = await openMachinePlane(machine);
    await plane.claim();
    machine.ploy.state.tokens.clear();
    machine.ploy.state.tokens.add('a-new-token');
    await expect(plane.claim()).rejects.toMatchObject({ status: 401 });
    writeSecret(machine.files.token, 'a-new-token');
    expect(await plane.claim()).toBeUndefined();
  });

  it('end with the signal, but for a completion', async () => {
    const machine = await makeJobsMachine();
    const stop = new AbortController();
    const plane = await openMachinePlane(machine, stop.signal);
    machine.ploy.queueJob();
    const { job_id: jobId } = (await plane.claim()) as ClaimPayload;
    stop.abort();
    await expect(plane.claim()).rejects.toMatchObject({ isTransient: true });
    await plane.complete(jobId, { status: 'Cancelled' });
    expect(machine.ploy.job(jobId).status).toBe('Cancelled');
  });
});
