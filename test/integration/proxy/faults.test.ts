// A proxy whose master does not answer, answers oddly, or is just being changed by somebody else: what has a bound keeps it, and a
// stop ends with all tunnels counted.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { UnavailableError } from '../../../src/lib/errors.ts';
import { askWorkers } from '../../../src/lib/haproxy/workers.ts';
import { acquireLock } from '../../../src/lib/lock/flock.ts';
import { drainProxy } from '../../../src/lib/proxy/drain.ts';
import { registerInstance } from '../../../src/lib/proxy/set.ts';
import { syncProxy } from '../../../src/lib/proxy/sync.ts';
import { closeTunnels, countTunnels } from '../../../src/lib/proxy/tunnels.ts';
import { startBackendServer } from '../../support/backend-servers.ts';
import { until } from '../../support/balanced.ts';
import { alterMaster } from '../../support/faulty-master.ts';
import { startProxy, type TestProxy } from '../../support/proxy.ts';
import { openTunnel, type ProxyTunnel } from '../../support/proxy-client.ts';

async function startWithTunnels(count: number): Promise<{ proxy: TestProxy; tunnels: ProxyTunnel[] }> {
  const [proxy, instance] = [await startProxy(), await startBackendServer('it')];
  await proxy.set('a', instance.backend.port);
  const tunnels = await Promise.all(Array.from({ length: count }, () => openTunnel(proxy.port, '/i/a/')));
  return { proxy, tunnels };
}

async function measure<T>(work: () => Promise<T>): Promise<{ result: T; tookMs: number }> {
  const startedAt = performance.now();
  const result = await work();
  return { result, tookMs: performance.now() - startedAt };
}

function holdLock({ ctx }: TestProxy): Promise<{ release(): void }> {
  return acquireLock(ctx.paths.locksDir, 'proxy', { ...ctx, command: 'reeve proxy set' });
}

describe('a worker that the master lists and does not find', () => {
  it('is asked for a while, and then no longer: the lock is free again', async () => {
    const proxy = await startProxy();
    const gone = '999999          worker          1               0d00h00m09s     2.6.12\n';
    await alterMaster(proxy, (request, answer) =>
      request.startsWith('show proc')
        ? answer.replace('# programs', `# old workers\n${gone}# programs`)
        : answer,
    );
    const options = { signal: proxy.ctx.signal, service: 'haproxy' };
    const asked = await measure(() =>
      askWorkers(proxy.at.masterSocket, ['show stat'], options).catch((error: unknown) => error),
    );
    expect(asked.result).toBeInstanceOf(UnavailableError);
    expect(asked.result).toMatchObject({
      code: 'cut',
      message: expect.stringMatching(/its master lists worker 999999, and does not find it$/),
    });
    expect(asked.tookMs).toBeLessThan(10_000);
    await expect(registerInstance(proxy.ctx, 'b', 20_002)).rejects.toThrow(UnavailableError);
    (await holdLock(proxy)).release();
  }, 30_000);
});

describe('an old worker that ends just as it is asked', () => {
  it('is no worker: registrations, counts and comparisons are those of the others', async () => {
    const { proxy } = await startWithTunnels(1);
    await proxy.reload();
    await proxy.set('b', 20_001);
    const old = (await countTunnels(proxy.ctx)).workers.find((worker) => worker.old)?.pid;
    let asked = 0;
    await alterMaster(proxy, (request, answer) => {
      if (request.startsWith('show proc')) {
        return asked % 2 === 0 ? answer : answer.replace(new RegExp(`^${old} .*\n`, 'm'), '');
      }
      if (!request.includes(`@!${old} `)) return answer;
      asked += 1;
      // As the master of HAProxy 2.6 says it.
      return '\nmaster> '.repeat(request.split('\n').length - 1);
    });
    await registerInstance(proxy.ctx, 'b', 20_002);
    expect(asked).toBe(1);
    asked = 0;
    expect((await countTunnels(proxy.ctx)).workers.map(({ old: isOld }) => isOld)).toEqual([false]);
    asked = 0;
    const local = { proxyBackendHost: '127.0.0.1', proxyDrainTimeoutMs: 30_000 };
    expect(await syncProxy(proxy.ctx, local)).toMatchObject({ repaired: [] });
  });
});

describe('a drain', () => {
  it.each<[string, string | undefined]>([
    ['is odd', '\nmaster> \nmaster> \nmaster> # pxname,svname\nmaster> '],
    ['breaks off', '\nmaster> '],
    ['does not come', undefined],
  ])('goes on where one look %s, and counts all in the end (A68, A69, A70)', async (_, odd) => {
    const { proxy, tunnels } = await startWithTunnels(3);
    let looks = 0;
    await alterMaster(proxy, (request, answer) => {
      if (request.includes('show stat')) looks += 1;
      return looks === 3 && request.includes('show stat') ? odd : answer;
    });
    const { result, tookMs } = await measure(() => drainProxy(proxy.ctx, { boundMs: 5_000 }));
    expect(result.data).toEqual({ tunnels: 3, ended: 0, forced: 3, draining: true });
    expect(tookMs).toBeGreaterThanOrEqual(5_000);
    expect(looks).toBeGreaterThan(4);
    await until(() => tunnels.every((tunnel) => !tunnel.isOpen()));
  });

  it('closes at its bound what is left where no look is answered from some time on (A69, A70)', async () => {
    const { proxy, tunnels } = await startWithTunnels(3);
    let looks = 0;
    await alterMaster(proxy, async (request, answer) => {
      if (!request.includes('show stat') || request.includes('shutdown')) return answer;
      looks += 1;
      return looks > 1 ? await new Promise<undefined>(() => {}) : answer;
    });
    const { result, tookMs } = await measure(() => drainProxy(proxy.ctx, { boundMs: 1_000 }));
    expect(result.data).toEqual({ tunnels: 3, ended: 0, forced: 3, draining: true });
    // A second, and three more in which it looks whether they have ended.
    expect(tookMs).toBeLessThan(12_000);
    await until(() => tunnels.every((tunnel) => !tunnel.isOpen()));
  });

  it('counts what it closed where the answer to that was lost (A70)', async () => {
    const { proxy, tunnels } = await startWithTunnels(3);
    let orders = 0;
    await alterMaster(proxy, (request, answer) => {
      if (!request.includes('shutdown sessions')) return answer;
      orders += 1;
      return orders === 1 ? undefined : answer;
    });
    const { data } = await drainProxy(proxy.ctx, { boundMs: 200 });
    expect(data).toEqual({ tunnels: 3, ended: 0, forced: 3, draining: true });
    expect(orders).toBe(2);
    await until(() => tunnels.every((tunnel) => !tunnel.isOpen()));
  });

  it('does not wait for a lock that somebody holds, and gives tunnels their whole time (A25, A67)', async () => {
    const { proxy, tunnels } = await startWithTunnels(2);
    const lock = await holdLock(proxy);
    let toldAt = Number.POSITIVE_INFINITY;
    const info = (): void => {
      toldAt = performance.now();
    };
    const ctx = { ...proxy.ctx, log: { ...proxy.ctx.log, info } };
    const draining = measure(() => drainProxy(ctx, { boundMs: 2_000 }));
    await until(async () => (await proxy.tell(`get map ${proxy.at.flagsMap} drain`)).includes('value="on"'));
    const { result, tookMs } = await draining;
    lock.release();
    expect(performance.now() - toldAt).toBeGreaterThanOrEqual(1_900);
    expect(result.data).toEqual({ tunnels: 2, ended: 0, forced: 2, draining: true });
    expect(tookMs).toBeLessThan(12_000);
    expect(readFileSync(proxy.at.flagsMap, 'utf8')).toBe('drain on\n');
    expect(proxy.warnings[0]).toMatch(/^the drain goes on without the lock: lock proxy is held by /);
    await until(() => tunnels.every((tunnel) => !tunnel.isOpen()));
  });

  it('is told again to a worker in which a sync of before has undone it (A67)', async () => {
    const { proxy, tunnels } = await startWithTunnels(1);
    const draining = drainProxy(proxy.ctx, { boundMs: 60_000 });
    const isOn = async (): Promise<boolean> =>
      (await proxy.tell(`get map ${proxy.at.flagsMap} drain`)).includes('value="on"');
    await until(isOn);
    await proxy.tell(`set map ${proxy.at.flagsMap} drain off`);
    await until(isOn);
    await expect(openTunnel(proxy.port, '/i/a/')).rejects.toThrow(' 503 ');
    tunnels[0]?.close();
    await draining;
  });
});

describe('tunnels', () => {
  it('of a worker that a reload makes old between the list and the order are closed as those of an old one (A69)', async () => {
    const { proxy, tunnels } = await startWithTunnels(3);
    await proxy.reload();
    tunnels.push(await openTunnel(proxy.port, '/i/a/'));
    let lists = 0;
    await alterMaster(proxy, (request, answer) => {
      if (!request.startsWith('show proc')) return answer;
      lists += 1;
      // As it was before the reload: it is the current one still.
      return lists === 1 ? answer.replace('# old workers\n', '') : answer;
    });
    expect(await closeTunnels(proxy.ctx)).toBe(4);
    await until(() => tunnels.every((tunnel) => !tunnel.isOpen()));
    await until(async () => (await countTunnels(proxy.ctx)).total === 0);
  });
});
