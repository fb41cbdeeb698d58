// Servers that come and go in a running HAProxy.
import { appendFileSync, readFileSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { renderBalancerFile } from '../../../src/lib/edge/balancer-file.ts';
import { balancerFile, runtimeSocket } from '../../../src/lib/edge/balancer-path.ts';
import { applyServerSteps } from '../../../src/lib/edge/balancer-servers.ts';
import type { ServerStep } from '../../../src/lib/edge/plan-balancer.ts';
import { dialOf } from '../../../src/lib/edge/route.ts';
import { UnavailableError } from '../../../src/lib/errors.ts';
import { askRuntime } from '../../../src/lib/haproxy/runtime.ts';
import { type BackendServer, startBackendServer } from '../../support/backend-servers.ts';
import { openBalancer, routeTo, startBalanced, until } from '../../support/balanced.ts';
import { askBalancer, openTunnel, startBalancerTraffic } from '../../support/balancer-client.ts';
import { makeTempDir } from '../../support/temp.ts';

const address = { signal: new AbortController().signal, service: 'haproxy' };

describe('servers of a domain', () => {
  it('serves a new one at once, and takes an old one out without a lost request (L43)', async () => {
    const [first, second] = [await startBackendServer('first'), await startBackendServer('second')];
    const { haproxy, balancer } = await startBalanced([routeTo('a.test', [first])]);
    const { traffic, stop } = startBalancerTraffic(haproxy.address, 'a.test', 200);
    await until(() => (traffic.by['first'] ?? 0) > 20);

    const added = await balancer.apply([routeTo('a.test', [first, second])]);
    await until(() => (traffic.by['second'] ?? 0) > 20);
    const drained = await balancer.apply([routeTo('a.test', [second])]);
    // What was on its way to it has had its answer once it may be deleted.
    await until(async () => (await balancer.compare([routeTo('a.test', [second])])).changes.length > 0);
    await first.stop();
    const before = traffic.by['second'] ?? 0;
    await until(() => (traffic.by['second'] ?? 0) > before + 20);
    const deleted = await balancer.apply([routeTo('a.test', [second])]);

    expect([added, drained, deleted].map((changes) => changes.map(({ action }) => action))).toEqual([
      ['write', 'add'],
      ['write', 'drain'],
      ['delete'],
    ]);
    expect(await balancer.compare([routeTo('a.test', [second])])).toEqual({ changes: [] });
    expect((await stop()).failures).toEqual([]);
  });

  it.each(['started with', 'added'])(
    'leaves the tunnels of a drained one, %s, alone and deletes it once they are gone (R44)',
    async (how) => {
      const [first, second] = [await startBackendServer('first'), await startBackendServer('second')];
      const { haproxy, balancer } = await startBalanced([routeTo('a.test', how === 'added' ? [] : [first])]);
      await balancer.apply([routeTo('a.test', [first])]);
      const tunnel = await openTunnel(haproxy.address, 'a.test');

      const routes = [routeTo('a.test', [second])];
      await balancer.apply(routes);
      const whileOpen = await balancer.compare(routes);
      const stamps = [await balancer.fetchStamp()];
      const said = await tunnel.say('hello');
      tunnel.close();
      await until(async () => (await balancer.compare(routes)).changes.length > 0);
      const changes = await balancer.apply(routes);
      stamps.push(await balancer.fetchStamp());

      // While it is drained, no tick may end at a glance.
      expect(stamps).toEqual([undefined, expect.any(String)]);
      expect(whileOpen).toEqual({ changes: [] });
      expect(said).toBe('first: hello');
      const subject = `a.test 127.0.0.1:${first.backend.port}`;
      expect(changes).toEqual([{ action: 'delete', subject, reason: 'nothing uses it any more' }]);
      expect(await balancer.compare(routes)).toEqual({ changes: [] });
    },
  );

  it('keeps a tunnel that has opened just when its server was to be deleted', async () => {
    const [first, second] = [await startBackendServer('first'), await startBackendServer('second')];
    const { haproxy, balancer } = await startBalanced([routeTo('a.test', [first])]);
    const tunnel = await openTunnel(haproxy.address, 'a.test');
    const dial = dialOf(first.backend);
    const target = { backend: 'a.test', server: dial, dial };
    const step: ServerStep = { action: 'delete', subject: dial, reason: 'test', target };

    const result = await applyServerSteps(runtimeSocket(haproxy), [step], address);

    expect(result).toEqual({ done: [], failures: [] });
    expect(await tunnel.say('still')).toBe('first: still');
    const changes = await balancer.apply([routeTo('a.test', [first, second])]);
    expect(changes.map(({ action }) => action).sort()).toEqual(['add', 'ready', 'write']);
  });

  it('keeps 50 tunnels, and the worker, over 20 flaps of one backend (R44)', async () => {
    const [steady, flapping] = [await startBackendServer('steady'), await startBackendServer('flapping')];
    const both = [routeTo('a.test', [steady, flapping]), routeTo('b.test', [steady])];
    const one = [routeTo('a.test', [steady]), routeTo('b.test', [steady])];
    const { haproxy, balancer } = await startBalanced(both);
    await until(() => haproxy.workers().length === 1);
    const workers = haproxy.workers();
    const domains = Array.from({ length: 50 }, (_, count) => (count % 2 === 0 ? 'a.test' : 'b.test'));
    const tunnels = await Promise.all(domains.map((domain) => openTunnel(haproxy.address, domain)));
    expect(flapping.tunnels()).toBeGreaterThan(0);

    for (let flap = 0; flap < 20; flap += 1) {
      await balancer.apply(one);
      await balancer.apply(both);
    }

    const said = await Promise.all(tunnels.map((tunnel) => tunnel.say('still')));
    expect(said.filter((text) => !text.endsWith(': still'))).toEqual([]);
    expect(haproxy.workers()).toEqual(workers);
    expect(await balancer.compare(both)).toEqual({ changes: [] });
  });

  it('sends requests at once to one that is back, although its checks have failed meanwhile', async () => {
    const [first, second] = [await startBackendServer('first'), await startBackendServer('second')];
    const both = [routeTo('a.test', [first, second])];
    const { haproxy, balancer } = await startBalanced(both);
    await openTunnel(haproxy.address, 'a.test');
    await openTunnel(haproxy.address, 'a.test');
    await balancer.apply([routeTo('a.test', [first])]);
    await second.stop();
    await until(() => haproxy.log().includes(`a.test/127.0.0.1:${second.backend.port} is DOWN`));
    await second.start();

    await balancer.apply(both);

    const answers = [
      await askBalancer(haproxy.address, 'a.test'),
      await askBalancer(haproxy.address, 'a.test'),
    ];
    expect(answers.map(({ body }) => body).sort()).toEqual(['first', 'second']);
  });

  it('switches on what a killed tick has only added', async () => {
    const [first, second] = [await startBackendServer('first'), await startBackendServer('second')];
    const { haproxy, balancer } = await startBalanced([routeTo('a.test', [first])]);
    const dial = `127.0.0.1:${second.backend.port}`;
    await askRuntime(runtimeSocket(haproxy), [`add server a.test/${dial} ${dial} check`], address);

    const changes = await balancer.apply([routeTo('a.test', [second])]);

    expect(changes.map(({ action }) => action)).toEqual(['write', 'ready', 'drain']);
    expect(await askBalancer(haproxy.address, 'a.test')).toEqual({ status: 200, body: 'second' });
  });

  it('changes the others where one cannot be changed, and tells which', async () => {
    const [first, second] = [await startBackendServer('first'), await startBackendServer('second')];
    const { haproxy } = await startBalanced([routeTo('a.test', [first]), routeTo('b.test', [])]);
    const step = (domain: string, { backend }: BackendServer): ServerStep => {
      const dial = dialOf(backend);
      const target = { backend: domain, server: dial, dial };
      return { action: 'add', subject: `${domain} ${dial}`, reason: 'test', target };
    };
    const steps = [step('a.test', first), step('b.test', second)];

    const { done, failures } = await applyServerSteps(runtimeSocket(haproxy), steps, address);

    expect(done).toEqual([steps[1]]);
    expect(failures.map(({ message }) => message)).toEqual([
      `cannot add a.test ${dialOf(first.backend)} in HAProxy: Already exists a server with the same name in backend.`,
    ]);
    expect(await askBalancer(haproxy.address, 'b.test')).toEqual({ status: 200, body: 'second' });
  });

  it('serves a new one, too, where the file cannot be written, and tells that it cannot', async () => {
    const [first, second] = [await startBackendServer('first'), await startBackendServer('second')];
    const { haproxy, balancer } = await startBalanced([routeTo('a.test', [first])]);
    const file = balancerFile(haproxy);
    renameSync(file, `${file}.real`);
    symlinkSync(`${file}.real`, file);

    const apply = balancer.apply([routeTo('a.test', [second])]);

    await expect(apply).rejects.toThrow(/haproxy\.cfg": it is a symbolic link$/);
    const bodies = [];
    for (let count = 0; count < 4; count += 1) bodies.push(await askBalancer(haproxy.address, 'a.test'));
    expect(bodies.filter(({ body }) => body !== 'second')).toEqual([]);
  });

  it('changes those of the domains that it has, too, where a new domain cannot be had, and tells why', async () => {
    const [first, second] = [await startBackendServer('first'), await startBackendServer('second')];
    const { haproxy, balancer } = await startBalanced([routeTo('a.test', [first])]);
    const file = balancerFile(haproxy);
    renameSync(file, `${file}.real`);
    symlinkSync(`${file}.real`, file);

    const apply = balancer.apply([routeTo('a.test', [second]), routeTo('b.test', [second])]);

    await expect(apply).rejects.toThrow(/haproxy\.cfg": it is a symbolic link$/);
    const bodies = [];
    for (let count = 0; count < 4; count += 1) bodies.push(await askBalancer(haproxy.address, 'a.test'));
    expect(bodies.filter(({ body }) => body !== 'second')).toEqual([]);

    rmSync(file);
    await balancer.apply([routeTo('a.test', [second]), routeTo('b.test', [second])]);
    expect(await askBalancer(haproxy.address, 'b.test')).toEqual({ status: 200, body: 'second' });
  });
});

describe('the stamp', () => {
  it('stands for the servers, the structure and the file, and for nothing of how they fare', async () => {
    const [first, second] = [await startBackendServer('first'), await startBackendServer('second')];
    const { haproxy, balancer } = await startBalanced([routeTo('a.test', [first])]);
    const stamp = await balancer.fetchStamp();
    await askBalancer(haproxy.address, 'a.test');
    await first.stop();
    await until(() => haproxy.log().includes('is DOWN'));
    expect(await balancer.fetchStamp()).toBe(stamp);

    const stamps = [stamp];
    await balancer.apply([routeTo('a.test', [first, second])]);
    stamps.push(await balancer.fetchStamp());
    await balancer.apply([routeTo('a.test', [first, second]), routeTo('b.test', [])]);
    stamps.push(await balancer.fetchStamp());
    appendFileSync(balancerFile(haproxy), '\n');
    stamps.push(await balancer.fetchStamp());
    expect(new Set(stamps).size).toBe(4);

    await haproxy.kill();
    expect(await balancer.fetchStamp()).toBeUndefined();
  });
});

describe('an end of HAProxy', () => {
  it('comes up after kill -9 with the servers that it had', async () => {
    const servers = [await startBackendServer('first'), await startBackendServer('second')];
    const { haproxy, balancer } = await startBalanced([routeTo('a.test', [])]);
    const routes = [routeTo('a.test', servers)];
    const changes = await balancer.apply(routes);

    await haproxy.kill();
    await haproxy.start();

    expect(changes.map(({ action }) => action)).toEqual(['write', 'add', 'add']);
    expect(await balancer.compare(routes)).toEqual({ changes: [] });
    expect((await askBalancer(haproxy.address, 'a.test')).status).toBe(200);
  });

  it.each(['addr 127.0.0.1 port 1', 'addr 127.0.0.9', 'weight 0', 'state maint', 'state drain'])(
    'is what it was again after somebody has set "%s" by hand',
    async (setting) => {
      const first = await startBackendServer('first');
      const routes = [routeTo('a.test', [first])];
      const { haproxy, balancer } = await startBalanced(routes);
      const stamp = await balancer.fetchStamp();
      const server = `a.test/127.0.0.1:${first.backend.port}`;
      await askRuntime(runtimeSocket(haproxy), [`set server ${server} ${setting}`], address);
      expect(await balancer.fetchStamp()).not.toBe(stamp);
      expect((await balancer.apply(routes)).map(({ action }) => action)).toEqual(['ready']);
      expect(await askBalancer(haproxy.address, 'a.test')).toEqual({ status: 200, body: 'first' });
      expect([await balancer.compare(routes), await balancer.fetchStamp()]).toEqual([{ changes: [] }, stamp]);
    },
  );

  it('has its file written while it is away, and says which unit should run', async () => {
    const first = await startBackendServer('first');
    const { haproxy, balancer } = await startBalanced();
    await haproxy.kill();

    const routes = [routeTo('a.test', [first])];
    const error = await balancer.apply(routes).catch((thrown: unknown) => thrown);
    await haproxy.start();

    expect(error).toBeInstanceOf(UnavailableError);
    expect(String(error)).toContain(runtimeSocket(haproxy));
    expect(String(error)).toContain('is reeve-balancer.service running?');
    expect(await balancer.compare(routes)).toEqual({ changes: [] });
    expect(await askBalancer(haproxy.address, 'a.test')).toEqual({ status: 200, body: 'first' });
  });

  it('lets any user read the file', async () => {
    const cacheDir = makeTempDir();
    const balancer = openBalancer({ cacheDir, directory: makeTempDir(), address: '127.0.0.1:1' });
    const file = balancerFile({ cacheDir });

    await expect(balancer.apply([])).rejects.toThrow(UnavailableError);

    expect(readFileSync(file, 'utf8')).toBe(renderBalancerFile([]).text);
    expect(statSync(file).mode & 0o777).toBe(0o644);
  });
});
