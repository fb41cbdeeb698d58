// The node's API for commands: its answers to the letter, for a client that takes no other.
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { callRaw, createAgendaClient } from '../../support/agenda/client.ts';
import { makeCommandsNode, nodeBoot, nodeToken } from '../../support/commands-node.ts';
import { tellFigure } from '../../support/system.ts';

const withToken = { 'X-Agenda-Node-Token': nodeToken };
const error = (text: string): string => JSON.stringify({ error: text });
const shell = (id: string, text: string, more: object = {}) => ({
  ...{ job_id: id, dir: '/', mode: 'shell', shell: text },
  ...more,
});

describe('GET /v1/health', () => {
  it('is open, and tells version and uptime (A8, A78, A79)', async () => {
    const { port } = await makeCommandsNode().serve();
    const health = await createAgendaClient({ port, token: undefined }).health();
    const about = JSON.parse(readFileSync(join(import.meta.dirname, '../../../package.json'), 'utf8'));
    expect(health.version).toBe((about as { version: string }).version);
    const uptime = Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]);
    expect(Math.abs(health.uptime_sec - uptime)).toBeLessThan(60);
  });
});

describe('the token', () => {
  it('is asked for by every route but the one for health (A20, A79)', async () => {
    const { port, client } = await makeCommandsNode().serve();
    const refused = { status: 401, text: error('invalid node token') };
    for (const headers of [
      {},
      ...['', 'tok', `${nodeToken}x`, nodeToken.toUpperCase()].map((token) => ({
        'X-Agenda-Node-Token': token,
      })),
    ]) {
      for (const [method, path] of [
        ['POST', '/v1/jobs'],
        ['GET', '/v1/jobs/job-1'],
        ['DELETE', '/v1/jobs/job-1'],
      ] as const) {
        const body = method === 'POST' ? { body: JSON.stringify(shell('job-1', 'true')) } : {};
        expect(await callRaw(port, { method, path, headers, ...body })).toMatchObject(refused);
      }
    }
    expect(await client.look('job-1')).toEqual({ status: 404, error: 'job not found' });
  });

  it('is not read from a body that is still on its way: a caller without it is refused first', async () => {
    const { port } = await makeCommandsNode().serve();
    const answer = await callRaw(port, {
      ...{ method: 'POST', path: '/v1/jobs', body: Buffer.alloc(8 * 2 ** 20, 'x') },
    });
    expect(answer.status).toBe(401);
  });
});

describe('POST /v1/jobs', () => {
  it('takes any number of commands one after another', async () => {
    const { client } = await makeCommandsNode().serve();
    for (let index = 0; index < 40; index += 1) {
      expect(await client.dispatch(shell(`job-${index}`, 'true'))).toBe(`job-${index}`);
      if (index % 8 === 7) await client.wait(`job-${index}`);
      if (index % 2 === 0) await client.delete(`job-${index}`);
    }
  });

  it('runs a shell and a program, in their directory, with their environment (A51, A52, A53)', async () => {
    const { client } = await makeCommandsNode().serve();
    const env = ['GIVEN=a "b" $c', 'GIVEN=the last one'];
    expect(await client.dispatch({ ...shell('s', 'echo "$GIVEN in $PWD"'), dir: '/usr', env })).toBe('s');
    const cmd = {
      job_id: 'c',
      dir: '/usr',
      env,
      mode: 'cmd',
      name: 'sh',
      args: ['-c', 'echo "$1 $GIVEN in $PWD"', 'sh', '$(id)'],
    };
    expect(await client.dispatch(cmd)).toBe('c');
    expect(await client.wait('s')).toEqual({
      status: 'success',
      exit_code: 0,
      output: 'the last one in /usr\n',
    });
    expect(await client.wait('c')).toEqual({
      status: 'success',
      exit_code: 0,
      output: '$(id) the last one in /usr\n',
    });
  });

  it.each<[string, string, string]>([
    ['no JSON', '{"job_id":', 'invalid request: '],
    ['an empty body', '', 'invalid request: '],
    ['no object', '[]', 'invalid request: it is no object'],
    ['no id', '{"mode":"shell","shell":"true"}', 'job_id is required'],
    ['an empty id', '{"job_id":"","mode":"shell","shell":"true"}', 'job_id is required'],
    [
      'an id that is no text',
      '{"job_id":7,"mode":"shell","shell":"true"}',
      'invalid request: job_id is no text',
    ],
    ['no mode', '{"job_id":"a","shell":"true"}', 'invalid request: mode is neither "cmd" nor "shell"'],
    ['another mode', '{"job_id":"a","mode":"ssh"}', 'invalid request: mode is neither "cmd" nor "shell"'],
    ['a mode without its program', '{"job_id":"a","mode":"cmd"}', 'name is required in this mode'],
    [
      'a variable without a value',
      '{"job_id":"a","mode":"shell","shell":"true","env":["A"]}',
      'invalid request: env[0] is no NAME=value',
    ],
    [
      'a NUL',
      '{"job_id":"a","mode":"cmd","name":"true","args":["b","a\\u0000"]}',
      'invalid request: args[1] has characters that no program can be given',
    ],
  ])('refuses %s with 400 (A53)', async (_, body, words) => {
    const node = makeCommandsNode();
    const { client } = await node.serve();
    const refusal = await client.dispatch(body);
    expect(refusal).toMatchObject({ status: 400, error: expect.stringContaining(words) as string });
    expect(node.files()).toEqual([]);
  });

  it('takes null and what is left away for nothing, and unknown fields', async () => {
    const { client } = await makeCommandsNode().serve();
    const body = { job_id: 'a', mode: 'shell', shell: 'pwd', env: null, args: null, later: { x: 1 } };
    expect(await client.dispatch(body)).toBe('a');
    expect(await client.wait('a')).toEqual({ status: 'success', exit_code: 0, output: '/\n' });
  });

  it('refuses a body that no command can be with 413', async () => {
    const { client } = await makeCommandsNode().serve();
    const refusal = await client.dispatch(shell('a', 'x'.repeat(5 * 2 ** 20)));
    expect(refusal).toMatchObject({ status: 413 });
  });

  it('starts one process for 200 callers at once with one id, and all of them are told the same (A48)', async () => {
    const node = makeCommandsNode();
    const { client } = await node.serve();
    const counter = join(node.root, 'counter');
    const body = shell('one', `echo x >> ${counter}; sleep 0.3`);
    await client.health();
    const startedAtMs = performance.now();
    const answers = await Promise.all(Array.from({ length: 200 }, () => client.dispatch(body)));
    tellFigure(
      `200 POSTs of one id at once: ${(performance.now() - startedAtMs).toFixed(0)} ms, one process`,
    );
    expect(new Set(answers)).toEqual(new Set(['one']));
    expect(await client.wait('one')).toMatchObject({ status: 'success' });
    expect(await client.dispatch(body)).toBe('one');
    expect(await client.wait('one')).toMatchObject({ status: 'success' });
    expect(readFileSync(counter, 'utf8')).toBe('x\n');
  });

  it('takes 32 commands at once and refuses the next with 503, but knows those that it has', async () => {
    const node = makeCommandsNode();
    const { client } = await node.serve();
    const go = join(node.root, 'go');
    const body = (id: string) => shell(id, `until [ -e ${go} ]; do sleep 0.2; done`);
    const ids = Array.from({ length: 40 }, (_, index) => `job-${index}`);
    const answers = await Promise.all(ids.map((id) => client.dispatch(body(id))));
    const taken = answers.filter((answer) => typeof answer === 'string');
    const refused = answers.filter((answer) => typeof answer !== 'string');
    expect(taken).toHaveLength(32);
    expect(new Set(refused.map(({ status, error: words }) => `${status} ${words}`))).toEqual(
      new Set(['503 too many commands at once: 32 are under way']),
    );
    expect(await client.dispatch(body(taken[0] ?? ''))).toBe(taken[0]);
    writeFileSync(go, '');
    for (const id of taken) expect(await client.wait(id)).toMatchObject({ status: 'success' });
    for (const id of ['after', 'another']) {
      expect(await client.dispatch(shell(id, 'true'))).toBe(id);
      expect(await client.wait(id)).toMatchObject({ status: 'success' });
    }
  });

  it('takes no lock for a command under way that a kill has left behind', async () => {
    const node = makeCommandsNode();
    const { client } = await node.serve();
    const locks = join(node.root, 'run/locks');
    mkdirSync(locks, { recursive: true });
    const times = { startedAt: new Date().toISOString(), endedAt: new Date().toISOString() };
    const about = { generation: 'g-1', acceptedAt: times.startedAt, bootId: nodeBoot };
    const runner = { pid: process.pid, startTime: 'another' };
    const request = { jobId: 'lost', dir: '', env: [], mode: 'shell', shell: 'true' };
    const lost = { kind: 'running', startedAt: times.startedAt, request, runner };
    for (const index of Array(14).keys()) {
      node.writeRecord(`ended-${index}`, {
        ...about,
        jobId: `ended-${index}`,
        state: { kind: 'success', ...times },
      });
      node.writeRecord(`lost-${index}`, { ...about, jobId: `lost-${index}`, state: lost });
      for (const key of ['ended', 'lost', 'gone'])
        writeFileSync(join(locks, `command@${key}-${index}.lock`), '');
    }
    expect(await client.dispatch(shell('a', 'echo a'))).toBe('a');
    expect(await client.wait('a')).toMatchObject({ output: 'a\n' });
  });

  it('takes any id, and tells two apart that would make one file name', async () => {
    const node = makeCommandsNode();
    const { client } = await node.serve();
    const ids = ['../../etc/passwd', 'a/b', 'ä ö', '.', '..', 'x'.repeat(512), 'A', 'a', '%2e', 'a?b#c'];
    for (const id of ids) expect(await client.dispatch(shell(id, `echo "${id.slice(0, 9)}"`))).toBe(id);
    for (const id of ids) expect(await client.wait(id)).toMatchObject({ output: `${id.slice(0, 9)}\n` });
    expect(node.files().every((name) => /^[A-Za-z0-9_-]{1,64}\.(json|output)$/.test(name))).toBe(true);
  });

  it('keeps commands from other people, and none of them longer than it runs', async () => {
    const node = makeCommandsNode();
    const { client } = await node.serve();
    const go = join(node.root, 'go');
    const text = `until [ -e ${go} ]; do sleep 0.05; done; echo "$SECRET" | wc -c`;
    await client.dispatch(shell('a', text, { env: ['SECRET=hunter2'] }));
    const file = join(node.stateDir, 'commands/a.json');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, 'utf8')).toContain('hunter2');
    writeFileSync(go, '');
    await client.wait('a');
    expect(readFileSync(file, 'utf8')).not.toContain('hunter2');
    expect(existsSync(join(node.stateDir, 'commands/a.output'))).toBe(true);
  });
});

describe('GET /v1/jobs/ID', () => {
  it('tells nothing of the output before the end, and all of it then (A5, A6, A36, A37, A38, A39)', async () => {
    const node = makeCommandsNode();
    const { client } = await node.serve();
    const go = join(node.root, 'go');
    await client.dispatch(shell('a', `echo one; until [ -e ${go} ]; do sleep 0.05; done; echo two >&2`));
    for (let count = 0; count < 20; count += 1) {
      expect(await client.look('a')).toEqual({ status: 'running', exit_code: 0, output: '' });
    }
    await client.dispatch(shell('b', `touch ${go}`));
    expect(await client.wait('a')).toEqual({ status: 'success', exit_code: 0, output: 'one\ntwo\n' });
  });

  it.each([
    ['exit 1', { exit_code: 1, error: 'exit status 1' }],
    ['exit 77', { exit_code: 77, error: 'exit status 77' }],
    ['kill -KILL $$', { exit_code: -1, error: 'ended by SIGKILL' }],
  ])('tells how "%s" ended (A5, A6, A55)', async (text, end) => {
    const { client } = await makeCommandsNode().serve();
    await client.dispatch(shell('a', `echo out; ${text}`));
    expect(await client.wait('a')).toEqual({ status: 'failed', output: 'out\n', ...end });
  });

  it('tells why a program does not start', async () => {
    const { client } = await makeCommandsNode().serve();
    await client.dispatch({ job_id: 'a', mode: 'cmd', name: 'no-such-program' });
    await client.dispatch({ ...shell('b', 'true'), dir: '/nowhere' });
    await client.dispatch({ ...shell('c', 'true'), dir: 'nowhere' });
    const failed = { status: 'failed', exit_code: -1, output: '' };
    const missing = 'cannot run "no-such-program": no such program, or nothing to run it with';
    expect(await client.wait('a')).toEqual({ ...failed, error: missing });
    expect(await client.wait('b')).toEqual({
      ...failed,
      error: 'cannot enter "/nowhere": no such directory',
    });
    expect(await client.wait('c')).toEqual(await client.wait('b'));
    await client.dispatch({ ...shell('d', 'pwd'), dir: 'usr/lib/..' });
    expect(await client.wait('d')).toMatchObject({ status: 'success', output: '/usr\n' });
  });

  it('keeps the tail of an output that is too long, with a mark that counts (A23, A54)', async () => {
    const { client } = await makeCommandsNode({ max_output_bytes: 100 }).serve();
    await client.dispatch(shell('a', 'i=0; while [ $i -lt 100 ]; do echo "line $i"; i=$((i+1)); done'));
    const { output } = await client.wait('a');
    const all = Array.from({ length: 100 }, (_, index) => `line ${index}\n`).join('');
    expect(output).toBe(`...[truncated]...\n${all.slice(-82)}`);
  });

  it('knows nothing of an id that nobody has used, by which its control plane tells a lost job (A41, A42, A53)', async () => {
    const { client } = await makeCommandsNode().serve();
    expect(await client.look('no-such-job')).toEqual({ status: 404, error: 'job not found' });
    await expect(client.wait('no-such-job')).rejects.toThrow('job no-such-job is lost');
  });
});

describe('other paths', () => {
  it.each([
    ['GET', '/', 404, '404 page not found'],
    ['GET', '/v1/jobs/', 404, '404 page not found'],
    ['GET', '/v1/jobs/a/b', 404, '404 page not found'],
    ['GET', '/v1/jobs/%zz', 400, 'the path has a part that cannot be decoded'],
    ['PUT', '/v1/jobs/a', 405, 'method not allowed'],
    ['GET', '/v1/jobs', 405, 'method not allowed'],
    ['POST', '/v1/health', 405, 'method not allowed'],
  ])('%s %s: %i', async (method, path, status, text) => {
    const { port } = await makeCommandsNode().serve();
    expect(await callRaw(port, { method, path, headers: withToken })).toMatchObject({
      status,
      text: error(text),
    });
  });
});
