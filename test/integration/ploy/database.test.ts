// What the real server's database refuses comes out as a 500 of the server: the strict one has no database, and refuses it too.
import { describe, expect, onTestFinished, test } from 'vitest';
import { call, claim, frame, packed } from '../../support/ploy/ask.ts';
import { makeKsuid } from '../../support/ploy/jobs.ts';
import { type Ploy, startPloy } from '../../support/ploy/server.ts';

async function startServer(): Promise<Ploy> {
  const ploy = await startPloy();
  onTestFinished(() => ploy.stop());
  return ploy;
}

describe("what the database refuses is the server's own trouble", () => {
  const event = (message: string, jobId?: string) => ({ level: 'info', message, job_id: jobId });

  test('an event or a chunk of a run or a job that is none; events before it stay', async () => {
    const ploy = await startServer();
    const { payload } = ploy.queueJob();
    await claim(ploy);
    const [none, path] = [makeKsuid('Run'), '/v1/nodes/node-1/events'];
    expect((await call(ploy, path, { run_id: none, events: [event('x')] })).text).toContain('run_id_fkey');
    const events = [event('one', payload.job_id), event('two', makeKsuid('Job')), event('three')];
    expect(await call(ploy, path, { run_id: payload.id, events })).toMatchObject({ status: 500 });
    expect([ploy.job(payload.job_id).events.length, ploy.state.runEvents.length]).toEqual([1, 0]);
    const chunk = { run_id: none, job_id: payload.job_id, chunk_no: 0, data: packed(frame('one')) };
    expect((await call(ploy, '/v1/nodes/node-1/logs', chunk)).text).toContain('run_id_fkey');
  });

  test('a character 0 in any text, and half of a pair in what is stored as it came', async () => {
    const ploy = await startServer();
    const { payload } = ploy.queueJob({ payload: { job_type: 'pre_gate' } });
    await claim(ploy);
    const { id: runId, job_id: jobId } = payload;
    const status = async (path: string, body: unknown): Promise<number> =>
      (await call(ploy, path, body)).status;
    const events = '/v1/nodes/node-1/events';
    expect(await status(events, { run_id: runId, events: [event('a\0b')] })).toBe(500);
    expect(await status(events, { run_id: runId, events: [event('\\u0000 and \ud800')] })).toBe(201);
    const packages = [{ package: 'a', version: '1\0' }];
    expect(await status(`/v1/jobs/${jobId}/sbom`, { packages })).toBe(500);
    expect(await status(`/v1/jobs/${jobId}/image`, { image: 'a\0' })).toBe(500);
    const diff = { patch: packed('diff'), summary: { job_type: '\ud800' } };
    expect(await status(`/v1/runs/${runId}/jobs/${jobId}/diff`, diff)).toBe(500);
    const about = { component: 'node', status: 'ok', details: { name: '\0' } };
    expect(await status('/v1/nodes/node-1/diagnostics', about)).toBe(500);
    const lines = { component: 'node', stream: 'stdout', lines: ['\0'] };
    expect(await status('/v1/nodes/node-1/daemon-logs', lines)).toBe(500);
  });
});
