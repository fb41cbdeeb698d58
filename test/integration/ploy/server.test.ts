// The strict server of ploy refuses what the real one refuses: nothing could be proven with one that bears everything.
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Answer, call, claim, frame, packed } from '../../support/ploy/ask.ts';
import { makeKsuid, readLines } from '../../support/ploy/jobs.ts';
import { createPki, openssl, type Pki } from '../../support/ploy/pki.ts';
import { startPloyProcess } from '../../support/ploy/process.ts';
import { type Ploy, type PloyOptions, startPloy } from '../../support/ploy/server.ts';
import { makeTempDir } from '../../support/temp.ts';

const servers: Ploy[] = [];

async function startServer(options: PloyOptions = {}): Promise<Ploy> {
  const ploy = await startPloy(options);
  servers.push(ploy);
  return ploy;
}

afterAll(async () => {
  for (const ploy of servers) await ploy.stop();
});

describe('a job', () => {
  test('is claimed once, in order, and ends once: P46, P47, P48', async () => {
    const ploy = await startServer();
    const first = ploy.queueJob();
    const next = ploy.queueJob({ after: first.payload.job_id, runId: first.payload.id });
    const { job_id: jobId, node_id: nodeId } = await claim(ploy);
    expect({ jobId, nodeId }).toEqual({ jobId: first.payload.job_id, nodeId: 'node-1' });
    expect(await call(ploy, '/v1/nodes/node-1/claim')).toEqual({ status: 204, text: '' });
    const path = `/v1/jobs/${jobId}/complete`;
    expect((await call(ploy, path, { status: 'Success' })).text).toContain('repo_sha_out is required');
    const end = { status: 'Success', exit_code: 0, repo_sha_out: 'a'.repeat(40) };
    expect((await call(ploy, path, end)).status).toBe(204);
    expect(next.status).toBe('Queued');
    expect(await call(ploy, path, end)).toEqual({
      status: 409,
      text: 'job status is Success, expected Running\n',
    });
    expect(first.history.map(({ status }) => status)).toEqual(['Created', 'Queued', 'Running', 'Success']);
    const status = JSON.parse((await call(ploy, `/v1/jobs/${jobId}/status`)).text) as { status: string };
    expect(status.status).toBe('Success');
  });

  test.each([
    ['an unknown field', { status: 'Fail', reason: 'x' }, 400],
    ['a trailing value', '{"status":"Fail"}{}', 400],
    ['no JSON', 'status=Fail', 400],
    ['a status that is no end', { status: 'Running' }, 400],
    ['a status of another type', { status: 1 }, 400],
    ['an exit code beyond 32 bits', { status: 'Error', exit_code: 2 ** 31 }, 400],
    ['stats that are no object', { status: 'Fail', stats: [] }, 400],
    ['metadata that is no text', { status: 'Fail', stats: { metadata: { a: 1 } } }, 400],
    ['a kind that is none', { status: 'Fail', stats: { job_meta: { kind: 'job' } } }, 400],
    ['a step of a gate', { status: 'Fail', stats: { job_meta: { kind: 'gate', mig_step_index: 0 } } }, 400],
    ['a gate of a mig', { status: 'Fail', stats: { job_meta: { kind: 'mig', gate: {} } } }, 400],
    [
      'what no database keeps',
      { status: 'Fail', stats: { job_meta: { kind: 'mig', mig_step_name: '\0' } } },
      500,
    ],
    ['a short commit', { status: 'Success', repo_sha_out: 'abc' }, 400],
    ['more than a mebibyte', { status: 'Fail', stats: { error: 'x'.repeat(1 << 20) } }, 413],
  ])('is not ended by a body with %s', async (_, body, status) => {
    const ploy = await startServer();
    const job = ploy.queueJob();
    await claim(ploy);
    expect((await call(ploy, `/v1/jobs/${job.payload.job_id}/complete`, body)).status).toBe(status);
    expect(job.status).toBe('Running');
  });

  test('is ended by its own node alone, with its token and its header: P80', async () => {
    const ploy = await startServer();
    const job = ploy.queueJob();
    await claim(ploy);
    const path = `/v1/jobs/${job.payload.job_id}/complete`;
    const end = { status: 'Fail' };
    expect((await call(ploy, path, end, { authorization: 'Bearer x' })).status).toBe(401);
    expect((await call(ploy, path, end, { PLOY_NODE_UUID: '' })).status).toBe(400);
    expect((await call(ploy, path, end, { PLOY_NODE_UUID: 'node-2' })).status).toBe(403);
    expect((await call(ploy, `/v1/jobs/${makeKsuid('Job')}/complete`, end)).status).toBe(404);
    expect((await call(ploy, '/v1/nodes/node-2/claim')).status).toBe(403);
    expect(job.completions).toEqual([]);
  });
});

describe('a log', () => {
  test('has each chunk once: P62, P63', async () => {
    const ploy = await startServer();
    const { payload } = ploy.queueJob();
    await claim(ploy);
    const chunk = { run_id: payload.id, job_id: payload.job_id, chunk_no: 0, data: packed(frame('one')) };
    expect((await call(ploy, '/v1/nodes/node-1/logs', chunk)).status).toBe(201);
    const again = await call(ploy, '/v1/nodes/node-1/logs', chunk);
    expect(again.status).toBe(500);
    expect(again.text).toContain('logs_run_job_chunk_uniq');
    expect(ploy.state.violations).toEqual([]);
    await call(ploy, '/v1/nodes/node-1/logs', { ...chunk, data: packed(frame('two')) });
    expect(ploy.state.violations).toEqual([`chunk 0 of ${payload.job_id} came again with other content`]);
    expect(readLines(ploy.job(payload.job_id))).toEqual(['one']);
  });

  test('is of an upload below 10 MiB in a body below 16 MiB', async () => {
    const ploy = await startServer();
    const { payload } = ploy.queueJob();
    await claim(ploy);
    const chunk = (bytes: number) => ({
      ...{ run_id: payload.id, job_id: payload.job_id, chunk_no: 0 },
      data: Buffer.alloc(bytes).toString('base64'),
    });
    expect((await call(ploy, '/v1/nodes/node-1/logs', chunk((10 << 20) + 1))).status).toBe(413);
    expect((await call(ploy, '/v1/nodes/node-1/logs', chunk(13 << 20))).status).toBe(413);
    expect((await call(ploy, '/v1/nodes/node-1/logs', chunk(0))).status).toBe(400);
    expect((await call(ploy, '/v1/nodes/node-1/logs', { ...chunk(1), data: '!' })).status).toBe(400);
  });
});

test('a snapshot is a repository at its commit, for whoever works on its run', async () => {
  const ploy = await startServer();
  const { payload } = ploy.queueJob();
  const path = `${ploy.url}/v1/runs/${payload.id}/snapshot`;
  const headers = { authorization: `Bearer ${ploy.token}`, PLOY_NODE_UUID: 'node-1' };
  expect((await fetch(path, { headers })).status).toBe(403);
  await claim(ploy);
  const response = await fetch(path, { headers });
  expect(response.headers.get('x-ploy-repo-sha')).toBe(payload.commit_sha);
  const tar = gunzipSync(Buffer.from(await response.arrayBuffer())).toString('latin1');
  expect(tar).toContain('./.git/HEAD');
  expect(tar).toContain('./README.md');
});

test('a heartbeat has no more free than there is: P71', async () => {
  const ploy = await startServer();
  const beat = {
    ...{ cpu_free_millis: 1, cpu_total_millis: 2, mem_free_bytes: 1, mem_total_bytes: 2 },
    ...{ disk_free_bytes: 1, disk_total_bytes: 2 },
  };
  expect((await call(ploy, '/v1/nodes/node-1/heartbeat', beat)).status).toBe(204);
  expect((await call(ploy, '/v1/nodes/node-1/heartbeat', { ...beat, mem_free_bytes: 3 })).status).toBe(400);
  expect((await call(ploy, '/v1/nodes/node-1/heartbeat', { ...beat, disk_free_bytes: -1 })).status).toBe(400);
  expect((await call(ploy, '/v1/nodes/node-1/heartbeat', { ...beat, load: 1 })).status).toBe(400);
  expect(ploy.state.nodes.get('node-1')?.heartbeats).toHaveLength(1);
});

describe('a fault', () => {
  test('is met before or after what was asked is done, so often and of that job', async () => {
    const ploy = await startServer();
    const [one, other] = [ploy.queueJob(), ploy.queueJob()];
    await claim(ploy);
    await claim(ploy);
    const end = async ({ payload }: typeof one): Promise<number> =>
      (await call(ploy, `/v1/jobs/${payload.job_id}/complete`, { status: 'Fail' })).status;
    const { job_id: jobId } = one.payload;
    ploy.faults.add({ kind: 'answer', status: 503, route: 'complete', jobId, times: 1 });
    expect(await end(one)).toBe(503);
    expect(one.status).toBe('Running');
    ploy.faults.add({ kind: 'reset', route: 'complete', committed: true, jobId, times: 1 });
    await expect(end(one)).rejects.toThrow();
    expect(one.status).toBe('Fail');
    expect(await end(one)).toBe(409);
    expect(await end(other)).toBe(204);
    expect(ploy.faults.met).toEqual({ 'complete answer 503': 1, 'complete reset after': 1 });
  });

  test('never loses a claim', async () => {
    const ploy = await startServer();
    ploy.queueJob();
    ploy.faults.add({ kind: 'cut', route: 'any', times: 1 });
    await expect(call(ploy, '/v1/nodes/node-1/claim')).rejects.toThrow();
    await claim(ploy);
    expect(() => ploy.faults.add({ kind: 'reset', route: 'claim', committed: true })).toThrow(
      'lost for good',
    );
  });
});

describe('over TLS', () => {
  let pki: Pki;
  beforeAll(() => {
    pki = createPki(makeTempDir(afterAll), 'node-1');
  });

  async function callTls(
    ploy: Ploy,
    path: string,
    about: { files?: { cert: string; key: string }; body?: string; bearer?: string; maxVersion?: 'TLSv1.2' },
  ): Promise<Answer> {
    const { files, body = '', bearer = ploy.token, maxVersion } = about;
    return await new Promise((resolve, reject) => {
      const outgoing = request(
        `${ploy.url}${path}`,
        {
          method: 'POST',
          agent: false,
          ca: readFileSync(pki.ca.cert),
          headers: { authorization: `Bearer ${bearer}`, PLOY_NODE_UUID: ploy.nodeId },
          ...(maxVersion === undefined ? {} : { maxVersion }),
          ...(files === undefined ? {} : { cert: readFileSync(files.cert), key: readFileSync(files.key) }),
        },
        (response) => {
          const parts: Buffer[] = [];
          response.on('data', (part: Buffer) => parts.push(part));
          response.on('end', () =>
            resolve({ status: response.statusCode ?? 0, text: Buffer.concat(parts).toString('utf8') }),
          );
        },
      );
      outgoing.once('error', reject);
      outgoing.end(body);
    });
  }

  test('a certificate of the cluster is asked for and looked at, and 1.3 is the least', async () => {
    const ploy = await startServer({ pki });
    const path = '/v1/nodes/node-1/claim';
    expect((await callTls(ploy, path, { files: pki.node })).status).toBe(204);
    await expect(callTls(ploy, path, {})).rejects.toThrow();
    await expect(callTls(ploy, path, { files: pki.foreign.node })).rejects.toThrow();
    await expect(callTls(ploy, path, { files: pki.expired() })).rejects.toThrow();
    await expect(callTls(ploy, path, { files: pki.node, maxVersion: 'TLSv1.2' })).rejects.toThrow();
    expect(ploy.state.requests.map(({ certificateName }) => certificateName)).toEqual(['node:node-1']);
    expect(ploy.connections).toEqual({ accepted: 5, refused: 4 });
  });

  test('a token is exchanged for a certificate once: P79', async () => {
    const ploy = await startServer({ pki, bootstrap: true });
    const buildRequest = (subject: string): string =>
      openssl(['req', '-new', '-key', pki.node.key, '-subj', subject]);
    const csr = buildRequest('/O=Ploy/CN=node:node-1');
    const exchange = async (bearer: string, body: unknown = { csr }): Promise<Answer> =>
      await callTls(ploy, '/v1/pki/bootstrap', { bearer, body: JSON.stringify(body) });
    const token = ploy.issueBootstrapToken();
    expect((await exchange('nobody')).status).toBe(401);
    expect((await exchange(ploy.issueBootstrapToken({ expiresAtMs: 0 }))).status).toBe(401);
    expect((await exchange(token, { csr: 'x' })).status).toBe(400);
    expect((await exchange(token, { csr: buildRequest('/CN=node:node-2') })).status).toBe(400);
    const answer = await exchange(token);
    expect(answer.status).toBe(200);
    const given = JSON.parse(answer.text) as Record<string, string>;
    expect(Object.keys(given).sort()).toEqual([
      ...['bearer_token', 'ca_bundle', 'certificate', 'fingerprint', 'not_after', 'not_before', 'serial'],
    ]);
    expect((await exchange(token)).status).toBe(401);
    expect((await exchange(ploy.issueBootstrapToken())).status).toBe(409);
    await expect(callTls(ploy, '/v1/nodes/node-1/claim', {})).rejects.toThrow();
  });
});

test('as a process of its own it takes orders: 1,000 jobs are queued and claimed', async () => {
  const ploy = await startPloyProcess();
  try {
    await ploy.order({ kind: 'queue', count: 1000 });
    const headers = { authorization: `Bearer ${ploy.token}`, PLOY_NODE_UUID: ploy.nodeId };
    for (let left = 1000; left > 0; left -= 1) {
      const answer = await fetch(`${ploy.url}/v1/nodes/${ploy.nodeId}/claim`, { method: 'POST', headers });
      expect(answer.status).toBe(200);
      await answer.arrayBuffer();
    }
    expect(await ploy.order({ kind: 'summary' })).toMatchObject({
      ...{ jobs: { Running: 1000 }, requests: { claim: 1000 }, violations: [] },
    });
  } finally {
    await ploy.stop();
  }
});
