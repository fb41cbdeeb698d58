// The routes about instances as a control plane calls them: `reeve api commands` on a socket, with its token and over TLS.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { callRaw } from '../../support/agenda/client.ts';
import { startInstance } from '../../support/agenda/instance-api.ts';
import { makeCommandsMachine } from '../../support/agenda/machine.ts';
import { callApi } from '../../support/api-node.ts';
import { makeCommandsNode, nodeToken } from '../../support/commands-node.ts';
import { createPki } from '../../support/ploy/pki.ts';
import { startProcess } from '../../support/programs.ts';
import { makeTempDir } from '../../support/temp.ts';

const token = { 'X-Agenda-Node-Token': nodeToken };

describe('the routes about instances', () => {
  it.each([
    ['none', {}],
    ['a wrong one', { 'x-agenda-node-token': `${nodeToken}x` }],
    ['an empty one', { 'x-agenda-node-token': '' }],
    ['one in another field', { authorization: `Bearer ${nodeToken}` }],
  ])('A79: do nothing without the token: %s', async (_, headers) => {
    const node = makeCommandsNode();
    const { port } = await node.serve();
    const instance = await startInstance((__, response) => response.end('metrics'));
    const query = `?port=${instance.port}&dir=/tmp`;
    for (const name of ['metrics', 'probe', 'logs']) {
      const answer = await callRaw(port, { path: `/v1/${name}/app/default${query}`, headers });
      expect([answer.status, answer.text]).toEqual([401, '{"error":"invalid node token"}']);
    }
    const call = { path: '/v1/proxy/app-1', method: 'PUT', body: JSON.stringify({ port: 1 }), headers };
    expect((await callRaw(port, call)).status).toBe(401);
    expect(instance.asked).toEqual([]);
    expect((await node.reeve('proxy', 'list', '--json')).stdout).toContain('"instances":[]');
  });

  it('A15, A57, A72, A78: serve whoever has it', async () => {
    const node = makeCommandsNode();
    const { port } = await node.serve();
    const instance = await startInstance((_, response) => response.end('metrics'));
    const place = `app/default?port=${instance.port}`;
    const logs = join(node.root, 'logs');
    mkdirSync(logs);
    writeFileSync(join(logs, 'app__default.log'), 'a line\n');
    const ask = async (path: string): Promise<[number, string]> => {
      const { status, text } = await callRaw(port, { path, headers: token });
      return [status, text];
    };
    expect(await ask(`/v1/metrics/${place}`)).toEqual([200, 'metrics']);
    expect(await ask(`/v1/probe/${place}`)).toEqual([200, expect.stringMatching(/^\{"http_status":200,/)]);
    expect(await ask(`/v1/logs/app/default?dir=${logs}`)).toEqual([
      200,
      '{"app":"app","instance":"default","logs":[{"service":"","file":"app__default.log","lines":["a line"]}]}',
    ]);
    const body = JSON.stringify({ port: instance.port });
    const put = await callRaw(port, { path: '/v1/proxy/app-1', method: 'PUT', body, headers: token });
    expect([put.status, put.text]).toEqual([200, `{"instance":"app-1","port":${instance.port}}`]);
    const { stdout } = await node.reeve('proxy', 'get', 'app-1');
    expect(stdout).toBe(`${instance.port}\n`);
  });

  it('A7, A8: tell the version that heartbeats tell', async () => {
    const node = makeCommandsNode();
    const { client } = await node.serve();
    const { central, root } = await makeCommandsMachine();
    const env = { ...node.env, REEVE_CONFIG: join(root, 'etc/reeve.yaml') };
    await startProcess(inject('reeveBin'), ['heartbeat'], env).ended;
    expect(central.seen(7)?.version).toBe((await client.health()).version);
  });
});

describe('the API over TLS', () => {
  it('wants the token of a caller that needs no certificate', async () => {
    const pki = createPki(makeTempDir());
    const node = makeCommandsNode({ tls: { cert_path: pki.server.cert, key_path: pki.server.key } });
    const { port } = await node.hold();
    const call = { path: '/v1/metrics/app/default?port=0', as: 'none' as const };
    expect((await callApi(port, pki, call)).status).toBe(401);
    const options = { headers: token };
    expect((await callApi(port, pki, { ...call, options })).status).toBe(400);
    expect((await callApi(port, pki, { path: '/v1/health', as: 'none' })).status).toBe(200);
    await expect(callApi(port, undefined, { path: '/v1/health' })).rejects.toThrow();
  });

  it('wants a certificate as well where there is an authority of callers', async () => {
    const pki = createPki(makeTempDir());
    const paths = { cert_path: pki.server.cert, key_path: pki.server.key, ca_path: pki.ca.cert };
    const { port } = await makeCommandsNode({ tls: paths }).hold();
    const call = { path: '/v1/metrics/app/default?port=0', options: { headers: token } };
    await expect(callApi(port, pki, { ...call, as: 'none' })).rejects.toThrow();
    await expect(callApi(port, pki, { ...call, as: pki.foreign.node })).rejects.toThrow();
    expect((await callApi(port, pki, call)).status).toBe(400);
    expect((await callApi(port, pki, { path: call.path })).status, 'and the token').toBe(401);
  });
});
