// Tunnels: counted apart over all workers, left alone by registrations and reloads, and drained rather than cut.
import { describe, expect, it } from 'vitest';
import { drainProxy, endDrain } from '../../../src/lib/proxy/drain.ts';
import { listInstances } from '../../../src/lib/proxy/list.ts';
import { registerInstance } from '../../../src/lib/proxy/set.ts';
import { syncProxy } from '../../../src/lib/proxy/sync.ts';
import { countTunnels } from '../../../src/lib/proxy/tunnels.ts';
import { type BackendServer, startBackendServer } from '../../support/backend-servers.ts';
import { until } from '../../support/balanced.ts';
import { startProxy, type TestProxy, untilDraining } from '../../support/proxy.ts';
import { askProxy, openTunnel, type ProxyTunnel, upgradeFields } from '../../support/proxy-client.ts';

const commands = { proxyBackendHost: '127.0.0.1', proxyDrainTimeoutMs: 30_000 };

async function startWithInstance(): Promise<{ proxy: TestProxy; instance: BackendServer }> {
  const [proxy, instance] = [await startProxy(), await startBackendServer('it')];
  await proxy.set('a', instance.backend.port);
  return { proxy, instance };
}

/** Some at a time, so that no queue of connections is ever full. */
async function openMany(port: number, count: number): Promise<ProxyTunnel[]> {
  const tunnels: ProxyTunnel[] = [];
  while (tunnels.length < count) {
    const more = Array.from({ length: Math.min(100, count - tunnels.length) }, () =>
      openTunnel(port, '/i/a/ws'),
    );
    tunnels.push(...(await Promise.all(more)));
  }
  return tunnels;
}

const total = async ({ ctx }: TestProxy): Promise<number> => (await countTunnels(ctx)).total;

/** As the current worker says, and so the old ones, which are told in the same breath. */
describe('active tunnels', () => {
  it('are those relayed now, and no plain requests (A65, A66)', async () => {
    const { proxy } = await startWithInstance();
    expect(await total(proxy)).toBe(0);
    const tunnels = await openMany(proxy.port, 3);
    await askProxy(proxy.port, '/i/a/');
    expect(await total(proxy)).toBe(3);
    tunnels[0]?.close();
    await until(async () => (await total(proxy)) === 2);
    const { text, data } = await listInstances(proxy.ctx);
    expect(text.at(-1)).toBe('active tunnels: 2');
    expect(data).toMatchObject({ running: true, activeTunnels: 2, draining: false });
  });

  it.each([
    ['is refused by the instance', 'refuse'],
    ['is cut by the instance', 'cut'],
    ['leads to a port where nobody listens', 'stop'],
  ] as const)('are none once an upgrade %s', async (_, how) => {
    const { proxy, instance } = await startWithInstance();
    const tunnel = how === 'cut' ? await openTunnel(proxy.port, '/i/a/') : undefined;
    if (how !== 'refuse') await instance.stop();
    // A plain answer to an upgrade: the field that asks for it without the key for it is refused by HAProxy itself.
    const fields = how === 'refuse' ? upgradeFields.slice(0, 2) : upgradeFields;
    await openTunnel(proxy.port, '/i/a/', fields).catch(() => {});
    await until(() => tunnel?.isOpen() !== true);
    await until(async () => (await total(proxy)) === 0);
  });

  it('are counted over the workers of before reloads, too', async () => {
    const { proxy } = await startWithInstance();
    await openMany(proxy.port, 2);
    await proxy.reload();
    await openMany(proxy.port, 3);
    await proxy.reload();
    const { total: all, workers } = await countTunnels(proxy.ctx);
    expect([all, workers.map(({ old, tunnels }) => [old, tunnels])]).toEqual([
      5,
      expect.arrayContaining([
        [false, 0],
        [true, 3],
        [true, 2],
      ]),
    ]);
    expect((await listInstances(proxy.ctx)).text.at(-1)).toBe('active tunnels: 5, in 3 workers');
  });
});

describe('a drain', () => {
  it('refuses new tunnels and serves plain requests, and unknown instances are 502 still (A67, A71)', async () => {
    const { proxy } = await startWithInstance();
    const tunnel = await openTunnel(proxy.port, '/i/a/');
    const draining = drainProxy(proxy.ctx, { boundMs: 60_000 });
    await untilDraining(proxy);

    expect((await listInstances(proxy.ctx)).text.at(-1)).toBe(
      'active tunnels: 1; new ones are refused (drain)',
    );
    await expect(openTunnel(proxy.port, '/i/a/')).rejects.toThrow('HTTP/1.1 503 ');
    await expect(openTunnel(proxy.port, '/i/b/')).rejects.toThrow('HTTP/1.1 502 ');
    expect((await askProxy(proxy.port, '/i/a/')).status).toBe(200);
    expect(await tunnel.say('still')).toBe('it: still');

    tunnel.close();
    expect(await draining).toMatchObject({ outcome: 'done', data: { tunnels: 1, ended: 1, forced: 0 } });
    await expect(openTunnel(proxy.port, '/i/a/')).rejects.toThrow('HTTP/1.1 503 ');
  });

  it('ends as soon as the last tunnel has, and at once where there is none (A68)', async () => {
    const { proxy } = await startWithInstance();
    const startedAt = performance.now();
    expect(await drainProxy(proxy.ctx, { boundMs: 60_000 })).toMatchObject({
      data: { tunnels: 0, forced: 0 },
    });
    await endDrain(proxy.ctx);
    // What the first one has said.
    proxy.messages.length = 0;
    const tunnel = await openTunnel(proxy.port, '/i/a/');
    const draining = drainProxy(proxy.ctx, { boundMs: 60_000 });
    await untilDraining(proxy);
    await new Promise((resolve) => setTimeout(resolve, 200));
    tunnel.close();
    expect(await draining).toMatchObject({ data: { tunnels: 1, ended: 1, forced: 0 } });
    expect(performance.now() - startedAt).toBeLessThan(15_000);
  });

  it('closes after its bound those that are left, in every worker, and tells how many (A25, A69, A70)', async () => {
    const { proxy } = await startWithInstance();
    const before = await openMany(proxy.port, 3);
    await proxy.reload();
    const after = await openMany(proxy.port, 4);
    before[0]?.close();
    await until(async () => (await total(proxy)) === 6);
    const startedAt = performance.now();
    const end = await drainProxy(proxy.ctx, { boundMs: 1_000 });
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(1_000);
    expect(end).toMatchObject({
      text: [
        'drained: tunnels that ended by themselves: 0; closed by force: 6',
        'new tunnels are refused until `reeve proxy drain --end`, or a start of reeve-proxy.service',
      ],
      data: { tunnels: 6, ended: 0, forced: 6, draining: true },
    });
    await until(() => [...before, ...after].every((tunnel) => !tunnel.isOpen()));
    expect(await total(proxy)).toBe(0);
    await until(() => proxy.workers().length === 1);
    expect((await askProxy(proxy.port, '/i/a/')).status).toBe(200);
  });

  it('lasts through a reload and a sync, and ends with the order or the next start (A67)', async () => {
    const { proxy, instance } = await startWithInstance();
    await drainProxy(proxy.ctx, { boundMs: 0 });
    await proxy.reload();
    await syncProxy(proxy.ctx, commands);
    await expect(openTunnel(proxy.port, '/i/a/')).rejects.toThrow('HTTP/1.1 503 ');
    await endDrain(proxy.ctx);
    expect(await (await openTunnel(proxy.port, '/i/a/')).say('x')).toBe('it: x');
    await drainProxy(proxy.ctx, { boundMs: 0 });
    await proxy.stop();
    await proxy.start();
    expect(await (await openTunnel(proxy.port, '/i/a/')).say('x')).toBe('it: x');
    expect(instance.tunnels()).toBeGreaterThan(0);
  });

  it.each(['current', 'old'])(
    'counts a tunnel once whose client has gone and whose instance does not notice, in the %s worker',
    async (which) => {
      const { proxy, instance } = await startWithInstance();
      instance.ignoresEnds = true;
      const [gone] = await openMany(proxy.port, 3);
      if (which === 'old') await proxy.reload();
      gone?.close();
      await until(() => gone?.isOpen() === false);
      const startedAt = performance.now();
      const { data } = await drainProxy(proxy.ctx, { boundMs: 300 });
      expect(data).toEqual({ tunnels: 3, ended: 0, forced: 3, draining: true });
      expect(performance.now() - startedAt).toBeLessThan(10_000);
      expect(await total(proxy)).toBe(0);
    },
  );

  it('of a HAProxy that does not run has nothing to do', async () => {
    const { proxy } = await startWithInstance();
    await proxy.stop();
    expect(await drainProxy(proxy.ctx, { boundMs: 60_000 })).toEqual({
      outcome: 'nothing-to-do',
      text: ['reeve-proxy.service does not run: there are no tunnels, and its start takes new ones'],
      data: { tunnels: 0, ended: 0, forced: 0, draining: false },
    });
    expect(await listInstances(proxy.ctx)).toMatchObject({ data: { running: false, draining: false } });
  });

  it('of a HAProxy that was killed is over, as its start ends it', async () => {
    const { proxy } = await startWithInstance();
    await drainProxy(proxy.ctx, { boundMs: 0 });
    await proxy.kill();
    expect(await listInstances(proxy.ctx)).toMatchObject({
      text: expect.arrayContaining(['HAProxy does not run']),
      data: { running: false, draining: false },
    });
  });

  it('that is interrupted leaves tunnels alone and says what it leaves', async () => {
    const { proxy } = await startWithInstance();
    const tunnel = await openTunnel(proxy.port, '/i/a/');
    const stop = new AbortController();
    const draining = drainProxy({ ...proxy.ctx, signal: stop.signal }, { boundMs: 60_000 });
    await untilDraining(proxy);
    stop.abort();
    await expect(draining).rejects.toThrow(/interrupted.*proxy drain --end/);
    expect(await tunnel.say('still')).toBe('it: still');
  });
});

describe('1,000 open WebSockets', () => {
  it('survive 1,000 registrations and a reload; a stop with a bound of 5 s closes those still open, and tells their number (A26, A64, A69, A70)', async () => {
    const { proxy, instance } = await startWithInstance();
    const other = await startBackendServer('other');
    const tunnels = await openMany(proxy.port, 1000);
    for (let count = 0; count < 1000; count += 1) {
      // Also of the instance that they lead to: what is open stays where it is.
      const name = count % 10 === 0 ? 'a' : `b-${count % 100}`;
      await registerInstance(proxy.ctx, name, count % 20 < 10 ? other.backend.port : 10_000 + count);
    }
    await proxy.set('a', instance.backend.port);
    await proxy.reload();
    tunnels.push(...(await openMany(proxy.port, 50)));
    expect(await total(proxy)).toBe(1050);
    const echoes = await Promise.all(tunnels.map((tunnel) => tunnel.say('still')));
    expect(echoes.filter((echo) => echo === 'it: still')).toHaveLength(1050);

    const draining = drainProxy(proxy.ctx, { boundMs: 5_000 });
    await untilDraining(proxy);
    for (const tunnel of tunnels.splice(0, 120)) tunnel.close();
    const startedAt = performance.now();
    const end = await draining;

    expect(end.data).toEqual({ tunnels: 1050, ended: 120, forced: 930, draining: true });
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    await until(() => tunnels.every((tunnel) => !tunnel.isOpen()));
    await until(() => instance.tunnels() === 0);
    await proxy.stop();
  }, 180_000);
});
