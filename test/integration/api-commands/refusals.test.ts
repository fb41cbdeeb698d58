// An API for commands that must not serve, or not whoever calls: public addresses, broken configurations, and requests that are none.
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { mapBounded } from '../../../src/lib/bounded.ts';
import { callRaw, createAgendaClient } from '../../support/agenda/client.ts';
import { callApi } from '../../support/api-node.ts';
import { makeCommandsNode, nodeToken } from '../../support/commands-node.ts';
import { createPki } from '../../support/ploy/pki.ts';
import { startProcess } from '../../support/programs.ts';
import { createRandom } from '../../support/random.ts';
import { tellFigure } from '../../support/system.ts';

describe('a public address', () => {
  it.each([
    ['0.0.0.0:0', '0.0.0.0'],
    [':0', 'all addresses'],
    ['203.0.113.7:7100', '203.0.113.7'],
    ['[::]:0', '::'],
  ])('is not listened on without TLS: %s (A11)', async (address, told) => {
    const end = await makeCommandsNode().reeve('api', 'commands', '--listen', address);
    expect(end.status).toBe(78);
    expect(end.stderr).toContain(
      `cannot serve commands on ${told}: that is not private, and there is no TLS (commands.tls)`,
    );
    expect(end.stderr).not.toContain('listening');
  });

  it.each([
    [64, '127.0.0.1:99999', 'cannot use --listen "127.0.0.1:99999": its port must be 0 to 65535'],
    [64, '127.0.0.1', 'cannot use --listen "127.0.0.1": it must be HOST:PORT or :PORT'],
    [78, 'no..name:7100', 'cannot listen on no..name:7100: its name is not known'],
    [78, '10.255.255.254:7100', 'cannot listen on 10.255.255.254:7100: this machine has no such address'],
  ])('ends with %i at --listen %s, in words', async (status, address, told) => {
    const end = await makeCommandsNode().reeve('api', 'commands', '--listen', address);
    expect([end.status, end.stderr]).toEqual([status, expect.stringContaining(`${told}\n`)]);
  });

  it('that a unit has handed over serves nobody, tells whoever calls so, and does not spin (A11)', async () => {
    const node = makeCommandsNode();
    const holder = await node.holdPublic(4);
    const call = async (path: string, ...more: string[]): Promise<string> => {
      const url = `http://127.0.0.1:${holder.port}${path}`;
      const curl = [
        'curl',
        '-s',
        '-m',
        '10',
        '-w',
        ' %{http_code}',
        '-H',
        `X-Agenda-Node-Token: ${nodeToken}`,
        ...more,
        url,
      ];
      return (await startProcess('nsenter', ['-t', String(holder.pid), '-n', ...curl]).ended).stdout;
    };
    const words = '{"error":"this node cannot serve now: its journal tells why"} 503';
    expect(await call('/v1/health')).toBe(words);
    expect(await call('/v1/jobs/a')).toBe(words);
    expect(await call('/v1/jobs', '-d', '{"job_id":"a","mode":"shell","shell":"true"}')).toBe(words);
    expect(node.files()).toEqual([]);
    await expect.poll(() => holder.servicePid(), { timeout: 30_000 }).toBeUndefined();
    expect(holder.starts()).toBe(1);
    expect(holder.log()).toContain('cannot serve commands on 0.0.0.0: that is not private');
  });

  it('is served with TLS, for whoever has the token (A11, A79)', async () => {
    const probe = makeCommandsNode();
    const pki = createPki(join(probe.root, 'pki'));
    const node = makeCommandsNode({ tls: { cert_path: pki.server.cert, key_path: pki.server.key } });
    const api = startProcess(inject('reeveBin'), ['api', 'commands', '--listen', '127.0.0.1:0'], node.env);
    onTestFinished(async () => {
      api.child.kill('SIGTERM');
      await api.ended;
    });
    let told = '';
    api.child.stderr.on('data', (chunk: Buffer) => {
      told += chunk.toString();
    });
    await api.waitFor('listening on 127.0.0.1:');
    const port = Number(/listening on 127\.0\.0\.1:(\d+)/.exec(told)?.[1]);
    const call = (headers: Record<string, string>) =>
      callApi(port, pki, { as: 'none', path: '/v1/jobs/a', options: { headers } });
    expect(await call({})).toMatchObject({ status: 401, text: '{"error":"invalid node token"}' });
    expect(await call({ 'X-Agenda-Node-Token': nodeToken })).toMatchObject({ status: 404 });
    await expect(callRaw(port, { path: '/v1/health' })).rejects.toThrow();
  });

  it('with an authority of callers wants their certificates as well', async () => {
    const probe = makeCommandsNode();
    const pki = createPki(join(probe.root, 'pki'));
    const tls = { cert_path: pki.server.cert, key_path: pki.server.key, ca_path: pki.ca.cert };
    const holder = await makeCommandsNode({ tls }).hold();
    await expect(callApi(holder.port, pki, { as: 'none', path: '/v1/health' })).rejects.toThrow();
    expect(await callApi(holder.port, pki, { path: '/v1/health' })).toMatchObject({ status: 200 });
    expect(await callApi(holder.port, pki, { path: '/v1/jobs/a' })).toMatchObject({ status: 401 });
  });
});

describe('an API that cannot serve', () => {
  it('answers 503 with a configuration that is broken, and serves once it is mended', async () => {
    const node = makeCommandsNode();
    const good = readFileSync(node.configFile, 'utf8');
    writeFileSync(node.configFile, 'commands: [');
    const holder = await node.hold(0.05);
    for (const { status } of await Promise.all(
      Array.from({ length: 10 }, () => callRaw(holder.port, { path: '/v1/health' })),
    )) {
      expect(status).toBe(503);
    }
    await expect.poll(() => holder.servicePid(), { timeout: 30_000 }).toBeUndefined();
    expect(holder.starts()).toBe(1);
    writeFileSync(node.configFile, good);
    expect((await createAgendaClient({ port: holder.port, token: nodeToken }).health()).version).toMatch(
      /^\d/,
    );
  });

  it('is none without its section', async () => {
    const node = makeCommandsNode();
    writeFileSync(node.configFile, '{}');
    const end = await node.reeve('api', 'commands', '--listen', '127.0.0.1:0');
    expect(end.status).toBe(78);
    expect(end.stderr).toContain('section commands is missing');
  });
});

/** What comes back until the connection ends, or nothing has come for a while. */
async function send(port: number, bytes: string | Buffer, quietMs = 1_500): Promise<string> {
  return await new Promise((resolve) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    socket.setTimeout(quietMs, () => socket.destroy());
    socket.on('data', (chunk: Buffer) => {
      answer += chunk.toString();
    });
    // Of a connection that is closed with bytes on their way.
    socket.once('error', () => {});
    socket.once('close', () => resolve(answer));
  });
}

describe('a request that is none', () => {
  const head = `Host: a\r\nX-Agenda-Node-Token: ${nodeToken}\r\n`;
  const body = '{"job_id":"smuggled","mode":"shell","shell":"true"}';
  const inner = `POST /v1/jobs HTTP/1.1\r\n${head}Content-Length: ${body.length}\r\n\r\n${body}`;

  it.each([
    [
      'two lengths',
      `POST /v1/jobs HTTP/1.1\r\n${head}Content-Length: 0\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
    ],
    [
      'a length and chunks',
      `POST /v1/jobs HTTP/1.1\r\n${head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`,
    ],
    [
      'chunks by another name',
      `POST /v1/jobs HTTP/1.1\r\n${head}Transfer-Encoding: xchunked\r\n\r\n${inner}`,
    ],
    ['a length that is none', `POST /v1/jobs HTTP/1.1\r\n${head}Content-Length: +0\r\n\r\n${inner}`],
    ['a header with a blank before its colon', `GET /v1/health HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n${inner}`],
    ['a folded header', `GET /v1/health HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n${inner}`],
    ['a bare line feed', `GET /v1/health HTTP/1.1\nHost: a\n\n${inner}`],
    ['no host', `GET /v1/health HTTP/1.1\r\n\r\n${inner}`],
    ['64 KiB of headers', `GET /v1/health HTTP/1.1\r\n${head}X: ${'x'.repeat(65_536)}\r\n\r\n${inner}`],
    ['a NUL in a header', `GET /v1/health HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n${inner}`],
    ['no HTTP', `hello\r\n\r\n${inner}`],
  ])('is refused, and what it carries with it: %s', async (_, bytes) => {
    const node = makeCommandsNode();
    const { client, port } = await node.serve();
    const answer = await send(port, bytes);
    expect(answer).toMatch(/^(HTTP\/1\.1 4\d\d |$)/);
    expect(answer.match(/HTTP\/1\.1 /g)?.length ?? 0).toBeLessThanOrEqual(1);
    expect(node.files()).toEqual([]);
    expect(await client.look('smuggled')).toMatchObject({ status: 404 });
  });

  it('is told from one that is good: two in one connection are both answered', async () => {
    const node = makeCommandsNode();
    const { client, port } = await node.serve();
    const last = inner.replace('Host: a', 'Connection: close\r\nHost: a');
    const answer = await send(port, `GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\n${last}`, 30_000);
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 202']);
    expect(await client.wait('smuggled')).toMatchObject({ status: 'success' });
  });
});

describe('a request that has been bent anywhere', () => {
  const body = '{"job_id":"known","dir":"/","env":["A=b"],"mode":"cmd","name":"/nowhere/x","args":["a"]}';
  const fields = `Host: a\r\nX-Agenda-Node-Token: ${nodeToken}\r\nContent-Type: application/json\r\n`;
  const good = `POST /v1/jobs HTTP/1.1\r\n${fields}Connection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const odd = [
    ...[
      '\r\n',
      '\n',
      '\0',
      ' ',
      '\t',
      ':',
      '%2f',
      '%00',
      '../',
      '?',
      '#',
      '\x7f',
      '\xff',
      '"',
      '\\ud800',
      '-1',
    ],
    ...[
      'Content-Length: 5\r\n',
      'Transfer-Encoding: chunked\r\n',
      'Expect: 100-continue\r\n',
      'Upgrade: x\r\n',
    ],
  ].map((text) => Buffer.from(text, 'latin1'));

  /** The same for each seed. */
  function bend(seed: number): Buffer {
    const { below, pick } = createRandom(seed);
    const at = below(good.length);
    const bytes = Buffer.from(good);
    const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)];
    switch (below(4)) {
      case 0:
        bytes[at] = below(256);
        return bytes;
      case 1:
        return Buffer.concat([before, after.subarray(1 + below(12))]);
      case 2:
        return Buffer.concat([before, before.subarray(Math.max(0, at - 1 - below(40))), after]);
      default:
        return Buffer.concat([before, pick(odd), after]);
    }
  }

  it('is answered or cut, makes no command without the token, and ends nothing (A79)', async () => {
    const node = makeCommandsNode();
    const { client, port, holder } = await node.serve(60);
    await client.dispatch(body);
    const answers = await mapBounded(
      Array.from({ length: 400 }, (_, index) => bend(index + 1)),
      32,
      async (bytes) => ({ bytes, answer: await send(port, bytes) }),
    );
    const statuses = answers.map(({ answer }) => /^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? 'cut');
    const counts = Object.fromEntries(
      [...new Set(statuses)].sort().map((one) => [one, statuses.filter((other) => other === one).length]),
    );
    tellFigure(`400 bent requests: ${JSON.stringify(counts)}`);
    const allowed = ['202', '400', '401', '404', '405', '408', '413', '417', '431', 'cut'];
    expect(Object.keys(counts).filter((status) => !allowed.includes(status))).toEqual([]);
    const strangers = answers.filter(({ bytes }) => !bytes.includes(nodeToken));
    expect(strangers.length).toBeGreaterThan(10);
    expect(strangers.filter(({ answer }) => answer.startsWith('HTTP/1.1 202'))).toEqual([]);
    expect(holder.starts()).toBe(1);
    expect(holder.log()).not.toMatch(/internal|Error:| at /);
    expect(await client.wait('known')).toMatchObject({ status: 'failed' });
  });
});
