// The node's API for jobs: its answers to the letter, and what it leaves for whoever runs the jobs.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type ApiAnswer, type ApiCall, type ApiNode, callApi, makeApiNode } from '../../support/api-node.ts';
import { startProcess } from '../../support/programs.ts';
import type { SocketHolder } from '../../support/socket-holder.ts';

const aStart = {
  run_id: 'run-1',
  job_id: 'job-1',
  job_type: 'mig',
  repo_url: 'https://git.example/repo.git',
  job_image: 'demo:1',
};

type Api = {
  node: ApiNode;
  holder: SocketHolder;
  call(path: string, body?: unknown, more?: ApiCall): Promise<ApiAnswer>;
};

async function anApi(options: Parameters<typeof makeApiNode>[0] = {}): Promise<Api> {
  const node = makeApiNode(options);
  const holder = await node.hold(5);
  const call: Api['call'] = (path, body, more = {}) =>
    callApi(holder.port, node.pki, {
      path,
      ...(body === undefined
        ? {}
        : { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) }),
      ...more,
    });
  return { node, holder, call };
}

/** Whoever starts the job finds it taken, so that its records stay as the API has left them. */
async function keepFromRunning({ node, holder: api }: Api, ...ids: string[]): Promise<void> {
  mkdirSync(join(node.root, 'run/locks'), { recursive: true });
  for (const id of ids) {
    const holder = startProcess('flock', [
      join(node.root, `run/locks/job@${id}.lock`),
      'sh',
      '-c',
      'echo held; cat',
    ]);
    onTestFinished(async () => {
      // With all that it has started: what found the job free now would wait a minute for an engine.
      await api.stop();
      holder.child.stdin.end();
      await holder.ended;
    });
    await holder.waitFor('held');
  }
}

function putOpenJob({ node }: Api, jobId: string, runId: string): string {
  const directory = join(node.stateDir, 'jobs', jobId);
  mkdirSync(directory, { recursive: true });
  const claim = {
    version: 1,
    source: 'claim',
    claimedAt: '2026-06-04T03:00:00.000Z',
    runId,
    jobId,
    payload: {},
  };
  writeFileSync(join(directory, 'claim.json'), JSON.stringify(claim));
  return directory;
}

const readJson = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));
const openJobs = ({ node }: Api): string[] => {
  try {
    return readdirSync(join(node.stateDir, 'jobs')).sort();
  } catch {
    return [];
  }
};

const text = (status: number, words: string) => ({ status, text: `${words}\n` });

describe('the API for jobs answers (P28, P29, P30, P32)', () => {
  it.each<[string, string, unknown, ApiCall, { status: number; text: string }]>([
    ['a health check', '/health', undefined, {}, { status: 200, text: '{"status":"ok"}' }],
    ['one that posts to it', '/health', '', {}, text(405, 'method not allowed')],
    ['a start that gets', '/v1/run/start', undefined, {}, text(405, 'method not allowed')],
    ['a stop that puts', '/v1/run/stop', '', { method: 'PUT' }, text(405, 'method not allowed')],
    ['another path', '/v1/run/starts', undefined, {}, text(404, '404 page not found')],
    ['a path that only begins alike', '/health/', undefined, {}, text(404, '404 page not found')],
    ['a stop without a run', '/v1/run/stop', { reason: 'x' }, {}, text(400, 'run_id is required')],
    [
      'a stop of a run that is not here',
      '/v1/run/stop',
      { run_id: 'run-9', reason: 'x' },
      {},
      text(500, 'stop run failed: run run-9 has no open job here'),
    ],
  ])('%s', async (_, path, body, more, wanted) => {
    const { call } = await anApi();
    const { status, text: said } = await call(path, body, more);
    expect({ status, text: said }).toEqual(wanted);
  });

  it.each(['run_id', 'job_id', 'job_type', 'repo_url'])('400 to a start without %s', async (name) => {
    const api = await anApi();
    const { status, text: said, headers } = await api.call('/v1/run/start', { ...aStart, [name]: undefined });
    expect([status, headers['content-type']]).toEqual([400, 'text/plain; charset=utf-8']);
    expect(said).toContain(`${name} is required`);
    expect(openJobs(api)).toEqual([]);
  });

  it.each([
    ['no JSON', '{'],
    ['no object', '[1]'],
    ['no type of job that there is', JSON.stringify({ ...aStart, job_type: 'build' })],
  ])('400 to a start that has %s', async (_, body) => {
    const api = await anApi();
    expect((await api.call('/v1/run/start', body)).status).toBe(400);
    expect((await api.call('/v1/run/stop', '{')).status).toBe(400);
    expect(openJobs(api)).toEqual([]);
  });

  it('which methods there are', async () => {
    const { call } = await anApi();
    expect((await call('/v1/run/start')).headers['allow']).toBe('POST');
    expect((await call('/health', '')).headers['allow']).toBe('GET');
  });
});

describe('a start', () => {
  it('is a job like any other before it is answered, with our own server (P28)', async () => {
    const api = await anApi();
    await keepFromRunning(api, 'job-1');
    const {
      status,
      text: said,
      headers,
    } = await api.call('/v1/run/start', {
      ...aStart,
      env: { A: 'b' },
      server_url: 'https://elsewhere.example',
    });
    expect([status, said]).toEqual([202, '{"run_id":"run-1","status":"accepted"}']);
    expect(headers['content-type']).toBe('application/json');
    expect(readJson(join(api.node.stateDir, 'jobs/job-1/claim.json'))).toEqual({
      version: 1,
      source: 'api',
      claimedAt: expect.any(String),
      runId: 'run-1',
      jobId: 'job-1',
      payload: {
        id: 'run-1',
        job_id: 'job-1',
        job_type: 'mig',
        repo_url: 'https://git.example/repo.git',
        job_image: 'demo:1',
        env: { A: 'b' },
        status: 'Running',
        server_url: 'http://127.0.0.1:9',
      },
    });
  });

  it('with a job’s id that is known is refused, open or ended, whatever the slots', async () => {
    const api = await anApi();
    await keepFromRunning(api, 'job-1');
    expect((await api.call('/v1/run/start', aStart)).status).toBe(202);
    const wanted = text(500, 'start run failed: job job-1 is known already');
    const again = await api.call('/v1/run/start', aStart);
    expect({ status: again.status, text: again.text }).toEqual(wanted);
    mkdirSync(join(api.node.stateDir, 'jobs-ended'), { recursive: true });
    renameSync(join(api.node.stateDir, 'jobs/job-1'), join(api.node.stateDir, 'jobs-ended/job-1'));
    expect((await api.call('/v1/run/start', aStart)).status).toBe(500);
    expect(openJobs(api)).toEqual([]);
  });

  it('waits for a slot while its caller stays (P7)', async () => {
    const api = await anApi({ jobs: { concurrency: 1 } });
    await keepFromRunning(api, 'job-1');
    const other = putOpenJob(api, 'other', 'run-0');
    let answer: ApiAnswer | undefined;
    const waiting = api.call('/v1/run/start', aStart).then((end) => {
      answer = end;
    });
    // Another caller is served meanwhile.
    expect((await api.call('/health')).status).toBe(200);
    expect([answer, openJobs(api)]).toEqual([undefined, ['other']]);
    rmSync(other, { recursive: true });
    await waiting;
    expect(answer?.status).toBe(202);
    expect(openJobs(api)).toEqual(['job-1']);
  });

  it('is none when its caller has left before', async () => {
    const api = await anApi({ jobs: { concurrency: 1 } });
    await keepFromRunning(api, 'job-2');
    const other = putOpenJob(api, 'other', 'run-0');
    const leaving = new AbortController();
    const waiting = api.call('/v1/run/start', aStart, { signal: leaving.signal });
    await expect.poll(() => api.holder.log(), { timeout: 60_000 }).toContain('listening');
    expect((await api.call('/health')).status).toBe(200);
    leaving.abort();
    await expect(waiting).rejects.toThrow();
    // Whoever calls after it is answered after it was seen to leave.
    for (let calls = 0; calls < 2; calls += 1) expect((await api.call('/health')).status).toBe(200);
    rmSync(other, { recursive: true });
    // The only slot is the next caller's.
    expect((await api.call('/v1/run/start', { ...aStart, job_id: 'job-2' })).status).toBe(202);
    expect(openJobs(api)).toEqual(['job-2']);
  });

  it('that waits longer than write_timeout is told so, and is none (P10)', async () => {
    const api = await anApi({ jobs: { concurrency: 1 }, http: { write_timeout: '1s' } });
    putOpenJob(api, 'other', 'run-0');
    const { status, text: said } = await api.call('/v1/run/start', aStart);
    expect({ status, text: said }).toEqual(text(408, 'no answer within 1s'));
    expect(openJobs(api)).toEqual(['other']);
  });

  it('of twenty at once takes no more slots than there are (P7)', async () => {
    const api = await anApi({ jobs: { concurrency: 4 }, http: { write_timeout: '10s' } });
    const ids = Array.from({ length: 20 }, (_, index) => `job-${index}`);
    await keepFromRunning(api, ...ids);
    const ends = await Promise.all(ids.map((id) => api.call('/v1/run/start', { ...aStart, job_id: id })));
    const statuses = ends.map(({ status }) => status).sort();
    expect(statuses).toEqual([...Array(4).fill(202), ...Array(16).fill(408)]);
    expect(openJobs(api)).toHaveLength(4);
  });
});

describe('a stop', () => {
  it('asks for the end of every open job of its run, and of no other (P29)', async () => {
    const api = await anApi();
    const [one, two, three] = [
      putOpenJob(api, 'one', 'run-1'),
      putOpenJob(api, 'two', 'run-1'),
      putOpenJob(api, 'three', 'run-2'),
    ];
    const given = ` enough\u0007\n${'x'.repeat(5000)}`;
    const { status, text: said } = await api.call('/v1/run/stop', { run_id: 'run-1', reason: given });
    expect([status, said]).toEqual([200, '{"run_id":"run-1","status":"stopped"}']);
    const reason = `enough ${'x'.repeat(993)}`;
    const cancel = { version: 1, at: expect.any(String), reason, by: 'api' };
    expect([one, two].map((job) => readJson(join(job, 'cancel.json')))).toEqual([cancel, cancel]);
    expect(readdirSync(three)).toEqual(['claim.json']);
    // The first reason stays.
    expect((await api.call('/v1/run/stop', { run_id: 'run-1', reason: 'again' })).status).toBe(200);
    expect(readJson(join(one, 'cancel.json'))).toEqual(cancel);
  });

  it('P29 R32: reaches every job of its run beside one whose records a newer version has written', async () => {
    const api = await anApi();
    const newer = putOpenJob(api, 'a-newer', 'run-1');
    writeFileSync(join(newer, 'claim.json'), '{"version":99}');
    const other = putOpenJob(api, 'other', 'run-1');
    // Somebody of a newer version has asked before: in words that we do not know.
    const asked = putOpenJob(api, 'with-a-cancel', 'run-1');
    writeFileSync(join(asked, 'cancel.json'), '{"version":99}');
    expect((await api.call('/v1/run/stop', { run_id: 'run-1', reason: 'enough' })).status).toBe(200);
    const cancel = { version: 1, at: expect.any(String), reason: 'enough', by: 'api' };
    expect([other, asked].map((job) => readJson(join(job, 'cancel.json')))).toEqual([cancel, cancel]);
    expect(readdirSync(newer)).toEqual(['claim.json']);
    await expect
      .poll(() => api.holder.log(), { timeout: 60_000 })
      .toContain('cannot tell whose job a-newer is');
  });
});
