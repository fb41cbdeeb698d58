// What systemd makes of an edge: the balancer and Caddy come back whatever happens to them, what is on follows the
// configuration, and nobody has rights that are not needed.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type EdgeBox, startEdgeBox } from '../support/edge-box.ts';
import type { Host } from '../support/host.ts';
import { isInBucket } from '../support/installed-store.ts';
import { describeHost, tellFigure } from '../support/system.ts';

const balancer = 'reeve-balancer.service';
const socketDir = '/run/reeve-balancer';
const balancerFile = '/var/cache/reeve/balancer/haproxy.cfg';
const autosave = '/var/lib/caddy/.config/caddy/autosave.json';
/** No timer helps here. */
const intervals = { tick: '1h', liveness: '30s', edge: '1h' };

type Finding = { check: string; level: string; what: string };

describeHost('the units of an edge', () => {
  let box: EdgeBox;
  let host: Host;
  beforeAll(async () => {
    box = await startEdgeBox({ intervals });
    host = box.host;
  });
  afterAll(() => host?.stop());

  const isActive = async (unit: string): Promise<boolean> =>
    (await host.show(unit, 'ActiveState')).ActiveState === 'active';
  const pidOf = async (unit: string): Promise<string> => (await host.show(unit, 'MainPID')).MainPID;
  const kill = async (unit: string): Promise<void> => {
    await host.output(['kill', '-KILL', await pidOf(unit)]);
  };

  async function doctor(check: string): Promise<Finding[]> {
    const { stdout } = await box.reeve('doctor', '--json');
    return (JSON.parse(stdout).findings as Finding[]).filter((finding) => finding.check === check);
  }

  /** After a run that found the present settings: systemd's timers fire once more after a daemon-reload, in the midst of it. */
  async function expectUnitsFine(): Promise<void> {
    await host.waitFor('a good run of the edge', () =>
      host.output(['systemctl', 'start', 'reeve-edge.service']).then(() => true),
    );
    expect((await doctor('units')).filter(({ level }) => level !== 'ok')).toEqual([]);
  }

  async function expectRunAfter(since: number): Promise<void> {
    await host.waitFor('a good run of the edge', async () => {
      const { startedAt, endedAt, lastGoodAt } = await box.runOf('edge');
      return Date.parse(startedAt) >= since && endedAt !== null && endedAt === lastGoodAt;
    });
  }

  async function expectServing(): Promise<void> {
    expect(await box.askBalancer()).toBe('503');
    const { stdout } = await host.run(['curl', '-sS', '--max-time', '20', 'http://127.0.0.1:2019/config/']);
    expect(stdout).toMatch(/^\{/);
  }

  it('are active after the install and after a reboot, and verify', async () => {
    const expectAll = async (): Promise<void> => {
      for (const unit of [
        'reeve-edge.path',
        'reeve-edge.timer',
        'reeve-balancer.socket',
        balancer,
        'caddy.service',
      ]) {
        await host.waitFor(`${unit} to be active`, () => isActive(unit));
      }
      await expectServing();
    };
    await expectAll();
    expect(await box.must('units', 'verify')).toMatch(/^\d+ units are right\n$/);
    expect(await box.must('units', 'list')).toMatch(/^caddy\.service +enabled +active/m);
    const rebootedAt = Date.now();
    await host.reboot();
    await expectAll();
    await expectRunAfter(rebootedAt);
    expect(await host.output(['systemctl', '--failed', '--quiet', '--no-legend'])).toBe('');
    expect((await doctor('caddy')).map(({ level }) => level)).toEqual(['ok', 'ok']);
    expect((await doctor('balancer')).map(({ level }) => level)).toEqual(['ok']);
  });

  it('give HAProxy no right, and root without any the way to its sockets, and nobody else', async () => {
    const pid = await pidOf(balancer);
    expect(await host.output(['ps', '-o', 'user=,comm=', '-p', pid])).toMatch(/^haproxy +haproxy\n$/);
    expect(await host.sh(`grep ^CapEff /proc/${pid}/status`)).toMatch(/\t0+\n$/);
    expect(await host.output(['stat', '-c', '%U %G %a', socketDir])).toBe('haproxy root 2770\n');
    await host.write(
      '/root/ask.mjs',
      `import { connect } from 'node:net';
       const socket = connect({ path: '${socketDir}/runtime.sock', allowHalfOpen: true });
       socket.on('error', ({ code }) => console.log(code)).pipe(process.stdout);
       socket.end('show version\\n');`,
    );
    const node = '/opt/reeve/current/runtime/node';
    const rootless = [
      '-p',
      'CapabilityBoundingSet=',
      '-p',
      'AmbientCapabilities=',
      '-p',
      'NoNewPrivileges=yes',
    ];
    const ask = (...properties: string[]): Promise<string> =>
      host.output(['systemd-run', '--quiet', '--wait', '--pipe', ...properties, node, '/root/ask.mjs']);
    expect(await ask(...rootless)).toMatch(/^2\.\d/);
    await host.sh('chmod 711 /root');
    expect(await ask('-p', 'User=nobody')).toBe('EACCES\n');
    await host.sh('chmod 700 /root');
  });

  it('let requests wait while HAProxy starts: killed, or stopped by somebody', async () => {
    const startedAt = performance.now();
    await kill(balancer);
    expect(await box.askBalancer()).toBe('503');
    tellFigure(
      `kill -9 of HAProxy: answered after ${Math.round(performance.now() - startedAt)} ms, none refused`,
    );
    await host.waitFor('HAProxy to be up', () => isActive(balancer));
    // Not what starts it, and the socket is left.
    await host.output(['systemctl', 'stop', balancer]);
    expect(await box.askBalancer()).toBe('503');
    // systemd hears of it from the master, and a worker answers before.
    await host.waitFor('HAProxy to be up again', () => isActive(balancer));
  });

  it('bring Caddy back after a kill -9, with what it was given last (R46)', async () => {
    const url = 'http://127.0.0.1:2019/config/apps/http/servers/given';
    const server = JSON.stringify({
      listen: ['127.0.0.1:8443'],
      routes: [{ handle: [{ handler: 'static_response', body: 'given' }] }],
    });
    await host.output([
      'curl',
      '-sS',
      '--fail',
      '-X',
      'PUT',
      '-H',
      'content-type: application/json',
      '-d',
      server,
      url,
    ]);
    const startedAt = performance.now();
    await kill('caddy.service');
    const answer = await host.waitFor('Caddy to serve', () =>
      host.output(['curl', '-sS', '--fail', 'http://127.0.0.1:8443/']),
    );
    expect(answer).toBe('given');
    tellFigure(`kill -9 of Caddy: served again after ${Math.round(performance.now() - startedAt)} ms`);
    expect(await host.read('/proc/sys/net/ipv4/tcp_migrate_req')).toBe('1\n');
    // What Debian's unit has would have put the Caddyfile in its place.
    expect((await host.run(['systemctl', 'reload', 'caddy.service'])).status).not.toBe(0);
  });

  it('start both again where a power failure has cut what they start from', async () => {
    await host.sh(`printf '{"apps":' >${autosave}`);
    await kill('caddy.service');
    await host.sh(`truncate -s 700 ${balancerFile}; printf 'frontend' >>${balancerFile}`);
    await kill(balancer);
    for (const file of [autosave, balancerFile]) {
      await host.waitFor(`${file} to be refused`, () => host.exists(`${file}.refused`));
    }
    await host.waitFor('both to serve', async () => {
      await expectServing();
      return true;
    });
    // And the edge finds the file as it should be.
    await box.must('edge');
    await host.waitFor('HAProxy to be up', () => isActive(balancer));
  });

  // Of a bucket nobody is told.
  it.skipIf(isInBucket)('run the edge when anything writes a shard for it', async () => {
    const writtenAt = Date.now();
    const shard = {
      version: 1,
      nodeId: 'web-2',
      privateIp: '10.99.0.9',
      updatedAt: new Date().toISOString(),
      backends: [],
    };
    await box.store.write('nodes/web-1-edge/upstream/web-2.json', JSON.stringify(shard));
    await expectRunAfter(writtenAt);
  });

  it('go on serving while reeve.target is stopped', async () => {
    const pids = [await pidOf(balancer), await pidOf('caddy.service')];
    await host.output(['systemctl', 'stop', 'reeve.target']);
    const stoppedAt = Date.now();
    expect(await isActive('reeve-edge.timer')).toBe(false);
    expect(await isActive('reeve-edge.path')).toBe(false);
    expect([await pidOf(balancer), await pidOf('caddy.service')]).toEqual(pids);
    await expectServing();
    await host.output(['systemctl', 'start', 'reeve.target']);
    expect(await isActive('reeve-edge.path')).toBe(true);
    // The timer's first run: what comes next takes HAProxy away from under one.
    await expectRunAfter(stoppedAt);
  });

  it('follow cluster.haproxy.address and cluster.balancer, and leave Caddy running', async () => {
    const caddy = await pidOf('caddy.service');
    const status = (port: number): Promise<string> =>
      host.output(['curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', `http://127.0.0.1:${port}/`]);
    await box.configureEdge({ intervals, haproxy: { address: '127.0.0.1:7400' } });
    expect(await host.waitFor('the new address', () => status(7400))).toBe('503');
    await expect(status(7300)).rejects.toThrow();
    await box.configureEdge({ intervals, balancer: 'caddy' });
    for (const unit of ['reeve-balancer.socket', balancer]) expect(await isActive(unit)).toBe(false);
    expect((await doctor('balancer')).map(({ what }) => what)).toEqual(['Caddy balances by itself']);
    await expectUnitsFine();
    await box.configureEdge({ intervals });
    expect(await status(7300)).toBe('503');
    expect(await pidOf('caddy.service')).toBe(caddy);
  });

  it('do without HAProxy where it is not installed', async () => {
    await host.sh('systemctl stop reeve-balancer.socket; mv /usr/sbin/haproxy /usr/sbin/haproxy.away');
    await host.output(['systemctl', 'start', 'reeve-edge.target']);
    expect(await isActive('reeve-balancer.socket')).toBe(false);
    await box.must('units', 'verify');
    await expectUnitsFine();
    expect((await doctor('balancer'))[0]?.what).toBe('Caddy balances by itself: HAProxy is not installed');
    await host.sh('mv /usr/sbin/haproxy.away /usr/sbin/haproxy');
    expect((await doctor('balancer'))[0]?.level).toBe('failure');
    // What the finding says to do.
    await host.output(['systemctl', 'start', balancer]);
    await expectServing();
  });

  it('go with the role, and with reeve: Caddy keeps its settings and is not restarted', async () => {
    const caddy = await pidOf('caddy.service');
    await box.configure({ cluster: { intervals } });
    expect(await host.exists('/etc/systemd/system/caddy.service.d')).toBe(false);
    expect((await host.show('caddy.service', 'Restart')).Restart).toBe('no');
    for (const unit of ['reeve-edge.timer', 'reeve-edge.path', 'reeve-balancer.socket', balancer]) {
      expect(await isActive(unit), unit).toBe(false);
    }
    expect(await isActive('reeve-heartbeat.timer')).toBe(true);
    await box.configureEdge({ intervals });
    await expectServing();
    const said = await host.output(['/opt/reeve/current/scripts/uninstall']);
    expect(said).toContain('Caddy is left as it is');
    expect(said).toContain('HAProxy no longer stands behind Caddy');
    expect(await host.exists('/etc/systemd/system/caddy.service.d')).toBe(false);
    expect(await host.exists('/etc/systemd/system/reeve-edge.target.wants')).toBe(false);
    expect((await host.run(['pgrep', 'haproxy'])).stdout).toBe('');
    expect(await pidOf('caddy.service')).toBe(caddy);
    expect(await host.output(['systemctl', '--failed', '--quiet', '--no-legend'])).toBe('');
  });
});
