// A reload: tunnels stay in the worker before for as long as a stop would wait for them, and the first sync after that ends those
// that are left.
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { drainProxy } from '../../../src/lib/proxy/drain.ts';
import { runSync, syncProxy } from '../../../src/lib/proxy/sync.ts';
import { countTunnels } from '../../../src/lib/proxy/tunnels.ts';
import { startBackendServer } from '../../support/backend-servers.ts';
import { until } from '../../support/balanced.ts';
import { startNodeProgram } from '../../support/programs.ts';
import { startProxy, type TestProxy, untilDraining } from '../../support/proxy.ts';
import { askProxy, openTunnel, type ProxyTunnel } from '../../support/proxy-client.ts';

/** Far above what comes before the first sync after a reload. */
const boundMs = 8_000;
const local = { proxyBackendHost: '127.0.0.1', proxyDrainTimeoutMs: boundMs };

async function startReloaded(): Promise<{ proxy: TestProxy; before: ProxyTunnel[]; reloadedAt: number }> {
  const [proxy, instance] = [await startProxy(), await startBackendServer('it')];
  await proxy.set('a', instance.backend.port);
  const open = (): Promise<ProxyTunnel> => openTunnel(proxy.port, '/i/a/');
  const before = [await open(), await open(), await open()];
  const reloadedAt = performance.now();
  await proxy.reload();
  return { proxy, before, reloadedAt };
}

/** Above the second that HAProxy's own count may be too much. */
async function untilOld(proxy: TestProxy): Promise<void> {
  await until(async () => {
    const info = await proxy.tell('show info').catch(() => '');
    return Number(/^Uptime_sec: (\d+)/m.exec(info)?.[1] ?? 0) >= 3;
  });
}

/** A kept connection on which one request has been answered; resolves with when it was closed. */
async function openKept(port: number): Promise<{ closedAt: Promise<number> }> {
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {});
  const closedAt = once(socket, 'close').then(() => performance.now());
  socket.write('GET /i/a/ HTTP/1.1\r\nHost: gateway.test\r\n\r\n');
  await once(socket, 'data');
  return { closedAt };
}

describe('a reload', () => {
  it('loses no request, whatever the number of reloads', async () => {
    const [proxy, instance] = [await startProxy(), await startBackendServer('it')];
    await proxy.set('a', instance.backend.port);
    const traffic = startNodeProgram('send-requests.mjs', [`http://${proxy.address}/i/a/`]);
    onTestFinished(() => void traffic.child.kill('SIGKILL'));
    await traffic.waitFor('sending');
    for (let left = 5; left > 0; left -= 1) await proxy.reload();
    traffic.child.stdin.end();
    const { stdout, stderr } = await traffic.ended;
    expect([stdout, stderr]).toEqual([expect.stringMatching(/sent \d+ failed 0 /), '']);
  });

  it('closes connections on which nothing is asked one by one, within a second or so', async () => {
    const [proxy, instance] = [await startProxy(), await startBackendServer('it')];
    await proxy.set('a', instance.backend.port);
    const measureSpread = async (): Promise<number> => {
      const kept = await Promise.all(Array.from({ length: 40 }, () => openKept(proxy.port)));
      await proxy.reload();
      const times = await Promise.all(kept.map(({ closedAt }) => closedAt));
      return Math.max(...times) - Math.min(...times);
    };
    const spreads = [await measureSpread()];
    // A machine that stands still sees them all at once, which it does not each time.
    while (Math.max(...spreads) <= 300 && spreads.length < 3) spreads.push(await measureSpread());
    expect(Math.max(...spreads)).toBeGreaterThan(300);
    expect(Math.max(...spreads)).toBeLessThan(10_000);
  });

  it('keeps tunnels within the bound of a drain; then a sync closes those that are left, and tells how many (A25)', async () => {
    const { proxy, before, reloadedAt } = await startReloaded();
    const after = await openTunnel(proxy.port, '/i/a/');
    expect(await syncProxy(proxy.ctx, local)).toMatchObject({ repaired: [], forced: 0 });
    before[0]?.close();
    await until(async () => (await countTunnels(proxy.ctx)).total === 3);

    let data = {};
    await until(async () => {
      const outcome = await runSync(proxy.ctx, local);
      data = outcome;
      return outcome.outcome === 'done';
    });

    expect(performance.now() - reloadedAt).toBeGreaterThanOrEqual(boundMs);
    expect(data).toMatchObject({
      text: ['HAProxy has 1 instance; tunnels of before a reload closed by force: 2'],
      data: { repaired: [], forced: 2 },
    });
    expect(proxy.warnings).toEqual(['tunnels closed by force 8s after a reload: 2']);
    await until(() => before.every((tunnel) => !tunnel.isOpen()));
    await until(() => proxy.workers().length === 1);
    expect(await after.say('still')).toBe('it: still');
    expect(await runSync(proxy.ctx, local)).toMatchObject({ outcome: 'nothing-to-do', data: { forced: 0 } });
  });

  it('that fails makes no worker an old one: nothing is closed, and all can be registered and drained (A70, A72)', async () => {
    const proxy = await startProxy();
    const instance = await startBackendServer('it');
    await proxy.set('a', instance.backend.port);
    const tunnel = await openTunnel(proxy.port, '/i/a/');
    await proxy.failReload();
    await untilOld(proxy);
    expect(await syncProxy(proxy.ctx, { ...local, proxyDrainTimeoutMs: 0 })).toMatchObject({ forced: 0 });
    expect(await tunnel.say('still')).toBe('it: still');
    await proxy.set('b', instance.backend.port);
    expect((await askProxy(proxy.port, '/i/b/')).status).toBe(200);
    expect((await drainProxy(proxy.ctx, { boundMs: 0 })).data).toEqual({
      tunnels: 1,
      ended: 0,
      forced: 1,
      draining: true,
    });
  });

  it('of before a drain leaves its tunnels to the drain, which counts them', async () => {
    const { proxy, before } = await startReloaded();
    await untilOld(proxy);
    const draining = drainProxy(proxy.ctx, { boundMs: 3_000 });
    await untilDraining(proxy);
    expect(await syncProxy(proxy.ctx, { ...local, proxyDrainTimeoutMs: 0 })).toMatchObject({ forced: 0 });
    expect((await draining).data).toEqual({ tunnels: 3, ended: 0, forced: 3, draining: true });
    await until(() => before.every((tunnel) => !tunnel.isOpen()));
  });
});
