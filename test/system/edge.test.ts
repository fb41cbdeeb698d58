// An edge as people meet it: a domain over HTTPS through Caddy and HAProxy, and what is left of that when either dies.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startAsking } from '../support/edge-asking.ts';
import { domain, type EdgeBox, startEdgeBox } from '../support/edge-box.ts';
import type { Host } from '../support/host.ts';
import { isInBucket } from '../support/installed-store.ts';
import { aWebDeploy } from '../support/services.ts';
import { describeHost, expectNoneFailed, tellFigure } from '../support/system.ts';

const tickMs = 5_000;
const intervals = { tick: '2s', liveness: '10s', edge: `${tickMs}ms` };
const image = 'reeve-test/web-app:v1';
const web = (overrides: Readonly<Record<string, unknown>> = {}): object =>
  aWebDeploy({ image, ingress: { domain, port: 8080, edge: 'web-1-edge' }, ...overrides });

describeHost('an edge on a machine of its own', () => {
  let box: EdgeBox;
  let host: Host;
  beforeAll(async () => {
    box = await startEdgeBox({ intervals });
    host = box.host;
    box.buildImages('v1', 'v2');
    const deployedAt = performance.now();
    await box.deploy([web()]);
    await served();
    tellFigure(`deploy of a first domain: served over HTTPS after ${since(deployedAt)} ms`);
  });
  afterAll(() => host?.stop());

  const since = (start: number): number => Math.round(performance.now() - start);
  const served = (page = /^web v1 on /): Promise<unknown> =>
    host.waitFor('the page', async () => page.test(await box.browse()), { everyMs: 20 });
  /** No run of the edge is under way, and the last one was good. */
  const idle = (): Promise<unknown> =>
    host.waitFor('the edge to be idle', async () => {
      const run = await host.run(['systemctl', 'start', 'reeve-edge.service']);
      return run.status === 0;
    });
  const kill = async (...units: string[]): Promise<void> => {
    const pids = await Promise.all(units.map(async (unit) => (await host.show(unit, 'MainPID')).MainPID));
    await host.output(['kill', '-KILL', ...pids]);
  };

  it('serves the domain with a certificate of Caddy’s own authority, through HAProxy', async () => {
    expect(await box.browse()).toMatch(/^web v1 on /);
    await host.waitFor('pages of both replicas', async () => {
      const pages = await Promise.all([box.browse(), box.browse(), box.browse(), box.browse()]);
      return new Set(pages).size === 2;
    });
    expect(await host.output(['curl', '-sS', 'http://127.0.0.1:2019/config/'])).toContain('X-Reeve-Route');
    const { stdout } = await box.reeve('doctor', '--json');
    const findings = JSON.parse(stdout).findings as { check: string; level: string }[];
    expect(findings.filter(({ level }) => level === 'failure')).toEqual([]);
  });

  it.each([
    ['Caddy', ['caddy.service']],
    ['HAProxy', ['reeve-balancer.service']],
    ['both', ['caddy.service', 'reeve-balancer.service']],
  ])('has its routes back within a tick after a kill -9 of %s (R46)', async (name, units) => {
    const tunnels = await box.startTunnels(10);
    const killedAt = performance.now();
    await kill(...units);
    await served();
    const backMs = since(killedAt);
    const alive = await tunnels.countAlive();
    await tunnels.end();
    tellFigure(`kill -9 of ${name}: served again after ${backMs} ms, ${alive} of 10 WebSockets survived`);
    expect(backMs).toBeLessThan(tickMs);
  });

  it('sees a shard that anything has written, in a directory at once', async () => {
    // No timer helps. Of a bucket nobody is told, so that there it has to.
    await box.configureEdge({ intervals: { ...intervals, edge: isInBucket ? '1s' : '1h' } });
    await idle();
    const other = 'other.example.com';
    const hostPort = 20901;
    await host.output(['docker', 'run', '-d', '-p', `${hostPort}:8080`, image]);
    const shard = {
      nodeId: 'web-2',
      privateIp: (await box.shard('web-1-edge')).privateIp,
      updatedAt: new Date().toISOString(),
      backends: [{ domain: other, hostPort }],
    };
    await host.sh(`echo 127.0.0.1 ${other} >>/etc/hosts`);
    const writtenAt = performance.now();
    await box.store.write('nodes/web-1-edge/upstream/web-2.json', JSON.stringify(shard));
    await host.waitFor('the new domain', () => box.browse('/', other), { everyMs: 20 });
    tellFigure(`a shard with a new domain: served over HTTPS after ${since(writtenAt)} ms`);
  });

  /** Who has the domain's backends, as Caddy's configuration says. */
  const balancing = async (): Promise<'haproxy' | 'caddy'> => {
    const config = await host.output(['curl', '-sS', 'http://127.0.0.1:2019/config/']);
    return config.includes('X-Reeve-Route') ? 'haproxy' : 'caddy';
  };

  it('goes from HAProxy to Caddy alone and back without a failed request: fast, slow or late, of HTTP/1.1 or 2', async () => {
    const asking = await startAsking(host);
    const balancers = [];
    for (const balancer of ['caddy', 'auto']) {
      await box.configureEdge({ intervals, balancer });
      await idle();
      balancers.push(await balancing());
    }
    const { served: counts, alerts, unread, failures } = await asking.stop();
    expect(failures).toBe('');
    expect(balancers).toEqual(['caddy', 'haproxy']);
    expect(Object.values(counts).every((count) => count > 0)).toBe(true);
    tellFigure(
      `HAProxy, Caddy alone, HAProxy: served ${JSON.stringify(counts)}, 0 failed; sent again ${unread} that were closed unread, ` +
        `${alerts} after an alert in the handshake`,
    );
  });

  it('leaves HAProxy only when Caddy is told, whatever look is under way with the settings of before', async () => {
    const lock = host.start(['flock', '/run/reeve/locks/edge.lock', 'sh', '-c', 'echo locked; read line']);
    await lock.waitFor('locked');
    await host.output(['systemctl', 'start', '--no-block', 'reeve-edge.service']);
    // It has read its settings by then.
    await host.waitFor('a look that waits', () => host.output(['pgrep', '-f', '^flock -x .* 3$']));
    const configured = box.configureEdge({ intervals, balancer: 'caddy' });
    await host.waitFor('Caddy to be told', () =>
      host.output(['pgrep', '-f', '^systemctl .*start reeve-edge']),
    );
    lock.child.stdin.end();
    await configured;
    expect(await balancing()).toBe('caddy');
    await box.configureEdge({ intervals });
    await idle();
    expect(await balancing()).toBe('haproxy');
  });

  it('gives both their routes after a reboot, and after a power failure', async () => {
    await host.reboot();
    await served();
    await host.losePower();
    await served();
    await expectNoneFailed(host);
  });
});
