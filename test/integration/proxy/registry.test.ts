// The registry: what is registered is in force at the next request, in every worker, whatever restarts, and is mended where a
// worker has something else.
import { existsSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { InputError } from '../../../src/lib/errors.ts';
import { askWorkers } from '../../../src/lib/haproxy/workers.ts';
import { getInstance, listInstances } from '../../../src/lib/proxy/list.ts';
import { registerInstance, removeInstance, setInstance } from '../../../src/lib/proxy/set.ts';
import { prepareProxy, runSync, syncProxy } from '../../../src/lib/proxy/sync.ts';
import { startBackendServer } from '../../support/backend-servers.ts';
import { until } from '../../support/balanced.ts';
import { makeProxy, readRegistry, startProxy, type TestProxy } from '../../support/proxy.ts';
import { askProxy, openTunnel } from '../../support/proxy-client.ts';

const local = { proxyBackendHost: '127.0.0.1', proxyDrainTimeoutMs: 30_000 };

const ask = async ({ port }: TestProxy, instance: string): Promise<string> => {
  const { status, body } = await askProxy(port, `/i/${instance}/`);
  return status === 200 ? body.trim() : String(status);
};

describe('a registration', () => {
  it('sets, overwrites, gets and removes the port of an instance (A72, A76, A77)', async () => {
    const proxy = await startProxy();
    const { ctx } = proxy;
    expect(await getInstance(ctx, 'a')).toMatchObject({
      outcome: 'failed',
      data: { instance: 'a', found: false },
    });
    expect(await setInstance(ctx, 'a', '20001')).toEqual({
      outcome: 'done',
      text: ['a is at port 20001'],
      data: { instance: 'a', port: 20_001, running: true },
    });
    expect((await setInstance(ctx, 'a', '20001')).outcome).toBe('nothing-to-do');
    expect((await setInstance(ctx, 'a', '20002')).text).toEqual(['a is at port 20002, before 20001']);
    expect(await getInstance(ctx, 'a')).toEqual({
      outcome: 'done',
      text: ['20002'],
      data: { instance: 'a', found: true, port: 20_002 },
    });
    expect((await listInstances(ctx)).data?.['instances']).toEqual([{ instance: 'a', port: 20_002 }]);
    expect(readRegistry(proxy)).toBe('a 20002\n');
    expect((await removeInstance(ctx, 'a')).outcome).toBe('done');
    expect((await removeInstance(ctx, 'a')).outcome).toBe('nothing-to-do');
    expect(readRegistry(proxy)).toBe('');
  });

  it.each([
    '..',
    '.',
    '',
    'a/b',
    'a%2Fb',
    '%2e%2e',
    'a b',
    'a\nb 1',
    'a;b',
    '../../etc/passwd',
    'x'.repeat(129),
  ])('of %j is refused, and nothing is written', async (name) => {
    const proxy = await startProxy();
    await expect(registerInstance(proxy.ctx, name, 20_001)).rejects.toThrow(InputError);
    await expect(removeInstance(proxy.ctx, name)).rejects.toThrow(InputError);
    expect(readRegistry(proxy)).toBe('');
  });

  it.each(['0', '-1', '65536', '', 'x', '1.5', '20001 x'])('with port %j is refused', async (port) => {
    const proxy = await makeProxy();
    await expect(setInstance(proxy.ctx, 'a', port)).rejects.toThrow(InputError);
  });

  it('of many at once loses none', async () => {
    const proxy = await startProxy();
    const ports = Array.from({ length: 40 }, (_, index) => [`i-${index}`, 20_000 + index] as const);
    await Promise.all(ports.map(([name, port]) => registerInstance(proxy.ctx, name, port)));
    expect(readRegistry(proxy).split('\n').filter(Boolean).sort()).toEqual(
      ports.map(([name, port]) => `${name} ${port}`).sort(),
    );
    expect(await syncProxy(proxy.ctx, local)).toEqual({
      instances: 40,
      isRunning: true,
      repaired: [],
      forced: 0,
    });
  });

  it('reloads nothing, and is known to workers of before a reload as well', async () => {
    const proxy = await startProxy();
    const instance = await startBackendServer('it');
    await proxy.set('a', instance.backend.port);
    await openTunnel(proxy.port, '/i/a/');
    await proxy.reload();
    const workers = proxy.workers();
    await proxy.set('b', 20_002);
    await proxy.set('a', 20_003);
    await removeInstance(proxy.ctx, 'a');
    const options = { signal: proxy.ctx.signal, service: 'haproxy' };
    const shown = await askWorkers(proxy.at.masterSocket, [`show map ${proxy.at.instancesMap}`], options);
    expect(shown.map(({ answers }) => answers[0]?.replace(/^0x\S+ /, ''))).toEqual(['b 20002', 'b 20002']);
    expect(proxy.workers()).toEqual(workers);
  });

  it('while HAProxy does not run is in force from its start (A73)', async () => {
    const proxy = await startProxy();
    const instance = await startBackendServer('it');
    await proxy.kill();
    const outcome = await setInstance(proxy.ctx, 'a', String(instance.backend.port));
    expect(outcome).toMatchObject({ outcome: 'done', data: { running: false } });
    expect(outcome.text).toEqual([
      `a is registered at port ${instance.backend.port}, in force once reeve-proxy.service runs`,
    ]);
    await proxy.start();
    expect(await ask(proxy, 'a')).toBe('it');
  });

  it('survives kills and restarts of HAProxy', async () => {
    const proxy = await startProxy();
    const instance = await startBackendServer('it');
    await proxy.set('a', instance.backend.port);
    await proxy.kill();
    await proxy.start();
    expect(await ask(proxy, 'a')).toBe('it');
    await proxy.stop();
    await proxy.start();
    expect(await ask(proxy, 'a')).toBe('it');
  });

  it('survives the death of a worker: the master ends with it, and whoever starts it again finds all', async () => {
    const proxy = await startProxy();
    const instance = await startBackendServer('it');
    await proxy.set('a', instance.backend.port);
    for (const pid of proxy.workers()) process.kill(pid, 'SIGKILL');
    await until(() => !existsSync(`/proc/${proxy.pid}/exe`));
    await proxy.kill();
    await proxy.start();
    expect(await ask(proxy, 'a')).toBe('it');
  });

  it('in the middle of reloads reaches every worker: none of 200 is lost', async () => {
    const proxy = await startProxy();
    const [one, two] = [await startBackendServer('one'), await startBackendServer('two')];
    let reloading = true;
    const reloads = (async () => {
      for (let count = 0; count < 5; count += 1) await proxy.reload();
      reloading = false;
    })();
    const wrong: string[] = [];
    for (let count = 0; reloading || count < 200; count += 1) {
      const [name, { backend }] = count % 2 === 0 ? (['one', one] as const) : (['two', two] as const);
      await proxy.set('a', backend.port);
      const answer = await ask(proxy, 'a');
      if (answer !== name) wrong.push(`${count}: ${answer}`);
    }
    await reloads;
    expect(wrong).toEqual([]);
    expect((await syncProxy(proxy.ctx, local)).repaired).toEqual([]);
  });
});

describe('a sync', () => {
  it('repairs what a worker has otherwise, says what, and has nothing to do the next time (A74)', async () => {
    const proxy = await startProxy();
    const { instancesMap, flagsMap } = proxy.at;
    for (const [name, port] of [
      ['a', 20_001],
      ['b', 20_002],
      ['c', 20_003],
    ] as const) {
      await proxy.set(name, port);
    }
    await openTunnel(proxy.port, '/i/none/').catch(() => {});
    await proxy.tell(`del map ${instancesMap} a`);
    await proxy.tell(`set map ${instancesMap} b 9`);
    await proxy.tell(`add map ${instancesMap} c 7`);
    await proxy.tell(`add map ${instancesMap} d 8`);
    await proxy.tell(`set map ${flagsMap} drain on`);

    const outcome = await runSync(proxy.ctx, local);

    const [pid] = proxy.workers();
    const repaired = [
      'a was missing (20001)',
      'b had 9 instead of 20002',
      'c had 20003 and 7 instead of 20003',
      'd was registered no longer',
      'drain had on instead of off',
    ].map((what) => `${what} in worker ${pid}`);
    expect(outcome.outcome).toBe('done');
    expect(outcome.data?.['repaired']).toEqual(expect.arrayContaining(repaired));
    expect(proxy.warnings.map((text) => text.replace('the proxy was repaired: ', '')).sort()).toEqual(
      repaired,
    );
    expect(await runSync(proxy.ctx, local)).toEqual({
      outcome: 'nothing-to-do',
      text: ['HAProxy has 3 instances'],
      data: { instances: 3, running: true, repaired: [], forced: 0 },
    });
  });

  it('of a HAProxy that does not run makes its files', async () => {
    const proxy = await makeProxy();
    const outcome = await runSync(proxy.ctx, local);
    expect(outcome).toMatchObject({ outcome: 'done', data: { instances: 0, running: false, repaired: [] } });
    expect(readRegistry(proxy)).toBe('');
  });

  it('of a HAProxy with another file says so', async () => {
    const maps = await makeProxy();
    await prepareProxy(maps.ctx, local);
    const proxy = await startProxy({ env: { REEVE_PROXY_MAPS: maps.at.directory } });
    await expect(syncProxy(proxy.ctx, local)).rejects.toThrow(
      /has it another file than systemd\/reeve-proxy.cfg/,
    );
  });

  it('of 2,000 instances after a start finds nothing, and brings all to a worker that has lost them', async () => {
    const proxy = await makeProxy();
    await prepareProxy(proxy.ctx, local);
    const lines = Array.from({ length: 2000 }, (_, index) => `i-${index} ${10_000 + index}\n`).sort();
    writeFileSync(proxy.at.instancesMap, lines.join(''));
    await proxy.start();
    expect(await syncProxy(proxy.ctx, local)).toEqual({
      instances: 2000,
      isRunning: true,
      repaired: [],
      forced: 0,
    });
    await proxy.tell(`clear map ${proxy.at.instancesMap}`);
    expect((await syncProxy(proxy.ctx, local)).repaired).toHaveLength(2000);
    expect(await syncProxy(proxy.ctx, local)).toEqual({
      instances: 2000,
      isRunning: true,
      repaired: [],
      forced: 0,
    });
  });
});
