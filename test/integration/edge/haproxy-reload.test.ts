// What needs another file: domains and probes.
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { balancerFile, masterSocket, runtimeSocket } from '../../../src/lib/edge/balancer-path.ts';
import { StepError } from '../../../src/lib/errors.ts';
import { reloadWorkers } from '../../../src/lib/haproxy/reload.ts';
import { startBackendServer } from '../../support/backend-servers.ts';
import { routeTo, startBalanced, until } from '../../support/balanced.ts';
import { askBalancer, openTunnel, startBalancerTraffic } from '../../support/balancer-client.ts';
import { makeTempDir } from '../../support/temp.ts';

describe('a reload', () => {
  it('serves new domains without a lost request, and keeps the tunnels that there are (R44)', async () => {
    const only = await startBackendServer('only');
    const routes = [routeTo('a.test', [only])];
    const { haproxy, balancer } = await startBalanced(routes);
    const tunnel = await openTunnel(haproxy.address, 'a.test');
    const { traffic, stop } = startBalancerTraffic(haproxy.address, 'a.test', 200);
    await until(() => traffic.served > 20);

    for (let count = 0; count < 5; count += 1) {
      routes.push(routeTo(`new${count}.test`, [only]));
      const changes = await balancer.apply(routes);
      expect(changes.map(({ action }) => action)).toEqual(['write', 'reload']);
      expect(await askBalancer(haproxy.address, `new${count}.test`)).toEqual({ status: 200, body: 'only' });
      const before = traffic.served;
      await until(() => traffic.served > before + 20);
    }

    expect(await tunnel.say('still')).toBe('only: still');
    expect(await balancer.compare(routes)).toEqual({ changes: [] });
    expect((await stop()).failures).toEqual([]);
  });

  it('lets old workers go once their last tunnel has', async () => {
    const only = await startBackendServer('only');
    const { haproxy, balancer } = await startBalanced([routeTo('a.test', [only])]);
    const tunnel = await openTunnel(haproxy.address, 'a.test');
    await balancer.apply([routeTo('a.test', [only]), routeTo('b.test', [only])]);
    await until(() => haproxy.workers().length === 2);
    tunnel.close();
    await until(() => haproxy.workers().length === 1);
  });

  it('that fails is told, and leaves the old worker serving', async () => {
    const only = await startBackendServer('only');
    const routes = [routeTo('a.test', [only])];
    const { haproxy, balancer } = await startBalanced(routes);
    const file = balancerFile(haproxy);
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, `${text}\nnonsense\n`);
    const reload = (description: string): Promise<void> =>
      reloadWorkers(masterSocket(haproxy), {
        signal: new AbortController().signal,
        service: 'reeve-balancer.service',
        runtimeSocket: runtimeSocket(haproxy),
        description,
      });

    const failed = [await reload('other').catch(String), await reload('other').catch(String)];

    const message =
      'cannot reload reeve-balancer.service: it could not use its configuration (journalctl -u reeve-balancer.service tells why)';
    expect(failed).toEqual([`StepError: ${message}`, `StepError: ${message}`]);
    expect(await askBalancer(haproxy.address, 'a.test')).toEqual({ status: 200, body: 'only' });

    const more = [...routes, routeTo('b.test', [only])];
    await balancer.apply(more);
    expect(await askBalancer(haproxy.address, 'b.test')).toEqual({ status: 200, body: 'only' });
    expect(await balancer.compare(more)).toEqual({ changes: [] });
  });
});

describe('a file that HAProxy would not start from', () => {
  it('is never put in place', async () => {
    const only = await startBackendServer('only');
    const { haproxy, balancer } = await startBalanced([routeTo('a.test', [only])]);
    const text = readFileSync(balancerFile(haproxy), 'utf8');
    const programs = makeTempDir();
    const lines = [
      '[NOTICE]   (1) : haproxy version',
      '[ALERT]    (1) : config : parsing [x:9] : bad',
      '[ALERT]    (1) : two',
    ];
    writeFileSync(
      join(programs, 'haproxy'),
      `#!/bin/sh\nprintf '%s\\n' ${lines.map((line) => `'${line}'`).join(' ')} >&2\nexit 1\n`,
    );
    chmodSync(join(programs, 'haproxy'), 0o755);
    vi.stubEnv('PATH', `${programs}:${process.env['PATH']}`);

    const apply = balancer.apply([routeTo('b.test', [only])]);

    await expect(apply).rejects.toThrow(
      new StepError('cannot use a new configuration of HAProxy: config : parsing [x:9] : bad'),
    );
    vi.unstubAllEnvs();
    expect(readFileSync(balancerFile(haproxy), 'utf8')).toBe(text);
    expect(await askBalancer(haproxy.address, 'a.test')).toEqual({ status: 200, body: 'only' });
    await balancer.apply([routeTo('b.test', [only])]);
    expect(await askBalancer(haproxy.address, 'b.test')).toEqual({ status: 200, body: 'only' });
  });
});
