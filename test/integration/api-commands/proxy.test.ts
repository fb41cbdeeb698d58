// `PUT /v1/proxy/:instance`: the registry, and a real HAProxy that leads to what is registered.
import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type InstanceApi, serveInstances, startInstance } from '../../support/agenda/instance-api.ts';
import { callApi } from '../../support/api-node.ts';
import { alterMaster } from '../../support/faulty-master.ts';
import { startNodeProgram } from '../../support/programs.ts';
import { readRegistry, startProxy } from '../../support/proxy.ts';

const put = (api: InstanceApi, instance: string, body: unknown) =>
  api.call(`/v1/proxy/${instance}`, {
    method: 'PUT',
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

describe('the registration of an instance', () => {
  it('A57, A72, A75, A77: is in force once it is answered, under the same address', async () => {
    const proxy = await startProxy();
    const api = await serveInstances({}, { paths: proxy.paths });
    const instances = await Promise.all(
      ['old', 'new'].map((name) => startInstance((_, response) => response.end(name))),
    );
    const through = async (): Promise<string> => {
      const { status, text } = await callApi(proxy.port, undefined, { path: '/i/app-1/x' });
      return `${status} ${text.trim()}`;
    };
    expect(await through()).toBe('502 unknown instance: app-1');
    const told: string[] = [];
    for (const { port } of [...instances, ...instances, ...instances]) {
      const answer = await put(api, 'app-1', { port });
      expect([answer.status, answer.text]).toEqual([200, JSON.stringify({ instance: 'app-1', port })]);
      told.push(await through());
    }
    expect(told).toEqual(['200 old', '200 new', '200 old', '200 new', '200 old', '200 new']);
    expect(readRegistry(proxy)).toBe(`app-1 ${instances[1]?.port}\n`);
  });

  it('A59, A60: stands whatever a probe has found: who is led there is the gateway’s to decide', async () => {
    const proxy = await startProxy();
    const api = await serveInstances({}, { paths: proxy.paths });
    const sick = await startInstance((_, response) => response.writeHead(500).end('sick'));
    await put(api, 'app-1', { port: sick.port });
    for (let count = 0; count < 20; count += 1) {
      const probe = await api.call(`/v1/probe/app/1?port=${sick.port}`);
      expect(JSON.parse(probe.text)).toMatchObject({ http_status: 500 });
    }
    const answer = await callApi(proxy.port, undefined, { path: '/i/app-1/x' });
    expect([answer.status, answer.text]).toEqual([500, 'sick']);
    await sick.stop();
    const probe = await api.call(`/v1/probe/app/1?port=${sick.port}`);
    expect(JSON.parse(probe.text)).toMatchObject({ http_status: 0 });
    expect((await callApi(proxy.port, undefined, { path: '/i/app-1/x' })).status).toBe(502);
    expect(readRegistry(proxy)).toBe(`app-1 ${sick.port}\n`);
  });

  it('is answered 500 where HAProxy does not take it, and is in force once it does', async () => {
    const proxy = await startProxy();
    const api = await serveInstances({}, { paths: proxy.paths });
    const instance = await startInstance((_, response) => response.end('it'));
    let isDeaf = true;
    await alterMaster(proxy, (request, answer) =>
      isDeaf && request.includes('get map') ? answer.replaceAll('found=yes', 'found=no') : answer,
    );
    const refused = await put(api, 'app-1', { port: instance.port });
    expect([refused.status, refused.text]).toEqual([
      500,
      expect.stringMatching(
        /^\{"error":"cannot register app-1 with worker \d+ of HAProxy: it has nothing instead of \d+ \(reeve proxy sync\)"\}$/,
      ),
    ]);
    isDeaf = false;
    expect((await put(api, 'app-1', { port: instance.port })).status).toBe(200);
    expect((await callApi(proxy.port, undefined, { path: '/i/app-1/x' })).text).toBe('it');
  });

  it('A72: is answered 500 where HAProxy does not answer: it is registered, and the next sync brings it', async () => {
    const proxy = await startProxy();
    const api = await serveInstances({}, { paths: proxy.paths });
    const [worker = 0] = proxy.workers();
    process.kill(worker, 'SIGSTOP');
    const refused = await put(api, 'app-1', { port: 20_001 });
    process.kill(worker, 'SIGCONT');
    expect([refused.status, refused.text]).toEqual([
      500,
      expect.stringContaining('cannot tell HAProxy that app-1 is at port 20001, as it is registered: '),
    ]);
    expect(readRegistry(proxy)).toBe('app-1 20001\n');
  });

  it('A77: is kept for the HAProxy that starts next where none runs', async () => {
    const api = await serveInstances();
    const answer = await put(api, 'app-1', { port: 8080, weight: 3 });
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'application/json']);
    const reeve = `${api.paths.runDir}/proxy/instances.map`;
    expect(existsSync(reeve)).toBe(true);
  });

  it.each([
    { port: 0 },
    { port: -1 },
    { port: 65_536 },
    { port: 1.5 },
    { port: '8080' },
    { port: null },
    {},
    [],
    null,
    '',
    '{"port":',
    '{"port":8080}{"port":1}',
  ])('is refused with 400 for %j', async (body) => {
    const api = await serveInstances();
    const answer = await put(api, 'app-1', body);
    expect([answer.status, Object.keys(JSON.parse(answer.text) as object)]).toEqual([400, ['error']]);
    expect(existsSync(`${api.paths.runDir}/proxy/instances.map`)).toBe(false);
  });

  it.each([
    '..',
    '.',
    '%2e%2e',
    'a%2Fb',
    'a%2fb',
    '%2E%2E%2Fetc',
    'a%20b',
    'a%0ab%208080',
    'a%00',
    'a%5Cb',
    'a;b',
    'a%3Bdel%20map',
    '%C3%A4',
    '%25',
    '-a',
    'x'.repeat(129),
  ])('is refused with 400 for the instance %s', async (instance) => {
    const api = await serveInstances();
    const answer = await put(api, instance, { port: 8080 });
    expect([answer.status, Object.keys(JSON.parse(answer.text) as object)]).toEqual([400, ['error']]);
    expect(existsSync(`${api.paths.runDir}/proxy/instances.map`)).toBe(false);
  });

  it('is refused with 413 for a body that is too large, and 405 in another way', async () => {
    const api = await serveInstances();
    expect((await put(api, 'app-1', { port: 8080, more: 'x'.repeat(70_000) })).status).toBe(413);
    const get = await api.call('/v1/proxy/app-1');
    expect([get.status, get.headers['allow']]).toEqual([405, 'PUT']);
    expect((await api.call('/v1/proxy/', { method: 'PUT', body: '{"port":1}' })).status).toBe(404);
    expect((await put(api, 'a/b', { port: 1 })).status).toBe(404);
  });

  it('is answered 503 while another keeps the lock for long, and takes place after it', async () => {
    const api = await serveInstances();
    const holder = startNodeProgram('hold-lock.ts', [api.paths.locksDir, 'proxy']);
    await holder.waitFor('holding');
    const busy = await put(api, 'app-1', { port: 8080 });
    expect([busy.status, busy.headers['retry-after'], busy.text]).toEqual([
      503,
      '1',
      expect.stringMatching(/^\{"error":"lock proxy is held by /),
    ]);
    holder.tell('stop');
    await holder.ended;
    expect((await put(api, 'app-1', { port: 8080 })).status).toBe(200);
  });
});
