// An edge as people meet it: a domain over HTTPS through Caddy and HAProxy, and what is left of that when either dies.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { caFile, domain, type EdgeBox, startEdgeBox } from '../support/edge-box.ts';
import type { Host } from '../support/host.ts';
import { isInBucket } from '../support/installed-store.ts';
import { aWebDeploy } from '../support/services.ts';
import { describeHost, tellFigure } from '../support/system.ts';

const tickMs = 5_000;
const intervals = { tick: '2s', liveness: '10s', edge: `${tickMs}ms` };
const image = 'reeve-test/web-app:v1';
const web = (overrides: Readonly<Record<string, unknown>> = {}): object =>
  aWebDeploy({ image, ingress: { domain, port: 8080, edge: 'web-1-edge' }, ...overrides });

/**
 * One request after another, each on a connection of its own, until its stdin ends. A Caddy that changes its document
 * answers nobody for a moment: a connection that does not come about (7, 35) is tried again, up to five times. A request
 * that was sent is not.
 */
const askScript = `#!/bin/sh
served=0 failed=0 again=0
ask() {
  for try in 1 2 3 4 5; do
    status=0
    curl -sS --fail --max-time 5 --cacert ${caFile} -o /dev/null "$1" 2>>/root/failures || status=$?
    case $status in
      7 | 35) again=$((again + 1)); sleep 0.04 ;;
      *) return $status ;;
    esac
  done
  return $status
}
# A job in the background has no stdin of its own.
exec 3<&0
( cat <&3 >/dev/null; touch /root/enough ) &
echo asking
while [ ! -e /root/enough ]; do
  if ask "$1"; then
    served=$((served + 1))
  else
    failed=$((failed + 1))
  fi
done
echo "$served served, $failed failed, $again connections tried again"
`;

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

  it('goes from HAProxy to Caddy alone and back without a failed request', async () => {
    await host.write('/root/ask', askScript, '0755');
    const asking = host.start(['/root/ask', `https://${domain}/`]);
    await asking.waitFor('asking');
    const balancers = [];
    for (const balancer of ['caddy', 'auto']) {
      await box.configureEdge({ intervals, balancer });
      await idle();
      const config = await host.output(['curl', '-sS', 'http://127.0.0.1:2019/config/']);
      balancers.push(config.includes('X-Reeve-Route') ? 'haproxy' : 'caddy');
    }
    asking.child.stdin.end();
    const { stdout } = await asking.ended;
    expect(balancers).toEqual(['caddy', 'haproxy']);
    expect(stdout).toMatch(/^asking\n\d+ served, 0 failed, \d connections tried again\n$/);
    tellFigure(`HAProxy, Caddy alone, HAProxy: ${stdout.split('\n')[1]}`);
  });

  it('gives both their routes after a reboot, and after a power failure', async () => {
    await host.reboot();
    await served();
    await host.losePower();
    await served();
    expect(await host.output(['systemctl', '--failed', '--quiet', '--no-legend'])).toBe('');
  });
});
