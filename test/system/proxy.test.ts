// The proxy as systemd has it: HAProxy without any right, its socket held for it, tunnels drained before it stops, and the
// registry there after everything but a boot.
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Host, startHost } from '../support/host.ts';
import { provision } from '../support/installed.ts';
import type { Program } from '../support/programs.ts';
import { describeHost, expectNoneFailed, tellFigure, whenIdle } from '../support/system.ts';

const unit = 'reeve-proxy.service';
const node = '/opt/reeve/current/runtime/node';
const programs = join(import.meta.dirname, '../support/programs');
const instancePort = 20_001;
const url = 'http://127.0.0.1:7200/i/blog/';
const section = {
  machine_id: 7,
  token: 'tok',
  central_base_url: '',
  proxy_drain_timeout: '5s',
  heartbeat_interval: '2s',
};

describeHost('the proxy of a node that runs commands', () => {
  let host: Host;
  beforeAll(async () => {
    host = startHost('web-1');
    const directory = await provision(host);
    await host.output([`${directory}/scripts/install`]);
    for (const name of ['web-app.mjs', 'open-tunnels.mjs', 'send-requests.mjs']) {
      await host.copy(join(programs, name), '/root');
    }
    await configure({});
  });
  afterAll(() => host?.stop());

  const configure = async (more: object): Promise<void> => {
    const text = JSON.stringify({ commands: { ...section, ...more } });
    await host.write('/etc/reeve/reeve.yaml', `${text}\n`, '0600');
    await host.output(['reeve', 'units', 'render', '--write']);
  };
  const pidOf = async (): Promise<string> => (await host.show(unit, 'MainPID')).MainPID;
  const ask = async (target = url): Promise<string> => {
    const argv = ['curl', '-sS', '-o', '/dev/null', '-w', '%{http_code}', '--max-time', '20', target];
    return await host.output(argv);
  };
  const startInstance = async (): Promise<void> => {
    const env = [`--setenv=PORT=${instancePort}`, '--setenv=VERSION=v1'];
    await host.output(['systemd-run', '--unit=instance', '--collect', ...env, node, '/root/web-app.mjs']);
    await host.waitFor(
      'the instance to listen',
      async () => (await ask(`http://127.0.0.1:${instancePort}/`)) === '200',
    );
  };
  const openTunnels = async (count: number): Promise<Program> => {
    const program = host.start([node, '/root/open-tunnels.mjs', `${url}ws`, String(count)]);
    await program.waitFor(`open ${count}\n`);
    return program;
  };
  const isActive = async (): Promise<boolean> =>
    (await host.show(unit, 'ActiveState', 'SubState')).SubState === 'running';
  const said = async (since: string): Promise<string[]> =>
    (await host.journal('-u', unit, `--since=@${since}`)).map(({ message }) => message);
  const now = async (): Promise<string> => (await host.output(['date', '+%s.%N'])).trim();

  it('is switched on with the section, verifies, and leads to what is registered (A12, A56)', async () => {
    await host.waitFor('the proxy to run', isActive);
    expect(await host.output(['reeve', 'units', 'verify'])).toMatch(/^\d+ units are right\n$/);
    await startInstance();
    expect(await ask()).toBe('502');
    await host.output(['reeve', 'proxy', 'set', 'blog', String(instancePort)]);
    expect(await ask()).toBe('200');
    const put = ['-X', 'PUT', '-H', 'X-Agenda-Node-Token: tok', '-d', `{"port":${instancePort}}`];
    const registered = await host.output(['curl', '-sS', ...put, 'http://127.0.0.1:7100/v1/proxy/shop']);
    expect(JSON.parse(registered)).toEqual({ instance: 'shop', port: instancePort });
    expect(await ask('http://127.0.0.1:7200/i/shop/')).toBe('200');
    await host.output(['reeve', 'proxy', 'remove', 'shop']);
    expect(await host.output(['reeve', 'proxy', 'sync'])).toBe('HAProxy has 1 instance\n');
    expect(await host.output(['systemctl', '--failed', '--quiet', '--no-legend'])).toBe('');
  });

  it('gives HAProxy no right, and none to write its maps', async () => {
    const pid = await pidOf();
    expect(await host.output(['ps', '-o', 'user=,comm=', '-p', pid])).toMatch(/^haproxy +haproxy\n$/);
    expect(await host.sh(`grep ^CapEff /proc/${pid}/status`)).toMatch(/\t0+\n$/);
    expect(await host.output(['stat', '-c', '%U %G %a', '/run/reeve-proxy', '/run/reeve/proxy'])).toBe(
      'haproxy root 2770\nroot root 755\n',
    );
    expect(await host.sh('stat -c "%U %a" /run/reeve/proxy/*.map | sort -u')).toBe('root 644\n');
  });

  it('lets requests wait while HAProxy starts: killed, or restarted; and none is lost (A73)', async () => {
    const startedAt = performance.now();
    await host.output(['kill', '-KILL', await pidOf()]);
    expect(await ask()).toBe('200');
    tellFigure(`kill -9 of the proxy: answered after ${Math.round(performance.now() - startedAt)} ms`);
    await host.waitFor('the proxy to run', isActive);
    const traffic = host.start([node, '/root/send-requests.mjs', url]);
    await traffic.waitFor('sending');
    for (const what of ['restart', 'reload', 'restart', 'reload']) {
      await host.output(['systemctl', what, unit]);
      expect(await ask()).toBe('200');
    }
    traffic.child.stdin.end();
    const { stdout, stderr } = await traffic.ended;
    tellFigure(`requests over two restarts and two reloads of the proxy: ${stdout.split('\n').at(-2)}`);
    expect([stdout, stderr]).toEqual([expect.stringMatching(/sent \d+ failed 0 /), '']);
  });

  it('keeps tunnels through a reload, and drains those of both workers at a restart, within its bound (A25, A26, A70)', async () => {
    // Longer than a reload and all that is looked at takes here, so that no heartbeat ends those of before it.
    await configure({ proxy_drain_timeout: '20s' });
    const before = await openTunnels(300);
    await host.output(['systemctl', 'reload', unit]);
    await host.waitFor('a new worker', async () =>
      (await host.output(['reeve', 'proxy', 'list'])).includes('in 2 workers'),
    );
    const after = await openTunnels(20);
    expect(await host.output(['reeve', 'proxy', 'list'])).toMatch(/active tunnels: 320, in 2 workers\n$/);
    before.tell('still');
    await before.waitFor('still 300\n');
    const traffic = host.start([node, '/root/send-requests.mjs', url]);
    await traffic.waitFor('sending');
    const since = await now();
    const startedAt = performance.now();
    const restarting = host.output(['systemctl', 'restart', unit]);
    await host.waitFor('the drain', async () =>
      (await said(since)).some((line) => line.includes('have 20s to end')),
    );
    after.tell('still');
    await after.waitFor('still 20\n');
    await restarting;
    const tookMs = performance.now() - startedAt;
    expect(tookMs).toBeGreaterThan(20_000);
    expect(tookMs).toBeLessThan(40_000);
    expect((await said(since)).filter((line) => line.startsWith('drained'))).toEqual([
      'drained: tunnels that ended by themselves: 0; closed by force: 320',
    ]);
    traffic.child.stdin.end();
    const { stdout, stderr } = await traffic.ended;
    tellFigure(
      `requests over a drain of 320 tunnels (${Math.round(tookMs)} ms): ${stdout.split('\n').at(-2)}`,
    );
    expect([stdout, stderr]).toEqual([expect.stringMatching(/sent \d+ failed 0 /), '']);
    for (const program of [before, after]) {
      program.child.stdin.end();
      await program.ended;
    }
    const again = await openTunnels(1);
    again.child.stdin.end();
    await again.ended;
  });

  it('closes tunnels of before a reload by a heartbeat, once they have had the time of a drain', async () => {
    await configure({ proxy_drain_timeout: '15s' });
    const before = await openTunnels(10);
    const [since, startedAt] = [await now(), performance.now()];
    await host.output(['systemctl', 'reload', unit]);
    await host.waitFor('a new worker', async () =>
      (await host.output(['reeve', 'proxy', 'list'])).includes('in 2 workers'),
    );
    const after = await openTunnels(1);
    const beats = async (): Promise<string[]> =>
      (await host.journal('-u', 'reeve-heartbeat.service', `--since=@${since}`)).map(
        ({ message }) => message,
      );
    await host.waitFor('the end of the tunnels', async () =>
      (await beats()).some((line) => line.includes('tunnels closed by force 15s after a reload: 10')),
    );
    expect(performance.now() - startedAt).toBeGreaterThan(15_000);
    await host.waitFor('one worker', async () =>
      (await host.output(['reeve', 'proxy', 'list'])).endsWith('active tunnels: 1\n'),
    );
    for (const program of [before, after]) {
      program.child.stdin.end();
      await program.ended;
    }
    await configure({});
  });

  it('serves and takes tunnels again after a restart in which somebody holds the lock', async () => {
    const words = ['/usr/local/bin/reeve', 'lock', 'proxy', '--', 'sleep', '300'];
    await host.output(['systemd-run', '--unit=holder', '--collect', ...words]);
    await host.waitFor('the lock', async () =>
      (await host.output(['reeve', 'lock', 'list'])).includes('proxy'),
    );
    const restarting = host.output(['systemctl', 'restart', unit]);
    const startedAt = performance.now();
    await host.waitFor('the stop', async () => !(await isActive()));
    expect(await ask()).toBe('200');
    // Not as long as reeve waits for a lock elsewhere.
    expect(performance.now() - startedAt).toBeLessThan(15_000);
    await restarting;
    const tunnel = await openTunnels(1);
    tunnel.child.stdin.end();
    await tunnel.ended;
    await host.output(['systemctl', 'stop', 'holder']);
  });

  it('ends a drain as soon as its tunnels have ended', async () => {
    await configure({ proxy_drain_timeout: '60s' });
    await host.waitFor('the tunnels of before to end', async () =>
      (await host.output(['reeve', 'proxy', 'list'])).includes('active tunnels: 0'),
    );
    const tunnels = await openTunnels(5);
    const since = await now();
    const startedAt = performance.now();
    const restarting = host.output(['systemctl', 'restart', unit]);
    await host.waitFor('the drain', async () =>
      (await said(since)).some((line) => line.includes('have 1m to end')),
    );
    tunnels.child.stdin.end();
    await tunnels.ended;
    await restarting;
    expect(performance.now() - startedAt).toBeLessThan(30_000);
    expect((await said(since)).filter((line) => line.startsWith('drained'))).toEqual([
      'drained: tunnels that ended by themselves: 5; closed by force: 0',
    ]);
    await configure({});
  });

  it('lets requests under way end before it stops, while new ones wait', async () => {
    const script =
      'require("http").createServer((q,r)=>{console.log("asked");setTimeout(()=>r.end(),3000)}).listen(20002)';
    await host.output(['systemd-run', '--unit=slow', '--collect', node, '-e', script]);
    await host.output(['reeve', 'proxy', 'set', 'slow', '20002']);
    await host.waitFor(
      'the slow instance',
      async () => (await ask('http://127.0.0.1:7200/i/slow/')) === '200',
    );
    const asked = async (): Promise<number> =>
      (await host.journal('-u', 'slow')).filter(({ message }) => message === 'asked').length;
    const before = await asked();
    const slow = ask('http://127.0.0.1:7200/i/slow/');
    await host.waitFor('the request to be under way', async () => (await asked()) > before);
    const startedAt = performance.now();
    await host.output(['systemctl', 'restart', unit]);
    // Its unit waits for ten seconds where HAProxy does not end by itself.
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect(await slow).toBe('200');
    expect(await ask()).toBe('200');
    await host.output(['reeve', 'proxy', 'remove', 'slow']);
  });

  it('is repaired by a heartbeat, which says so (A74)', async () => {
    await host.write(
      '/root/tell.mjs',
      `import { connect } from 'node:net';
       const socket = connect({ path: '/run/reeve-proxy/runtime.sock', allowHalfOpen: true });
       socket.pipe(process.stdout);
       socket.end('set map /run/reeve/proxy/instances.map blog 9\\n');`,
    );
    // No heartbeat comes between the harm and the look at it.
    await host.output(['systemctl', 'stop', 'reeve-heartbeat.timer']);
    await whenIdle(host, 'reeve-heartbeat.service');
    await host.output([node, '/root/tell.mjs']);
    expect(await ask()).toBe('502');
    await host.output(['systemctl', 'start', 'reeve-heartbeat.timer']);
    await host.waitFor('the repair', async () => (await ask()) === '200');
    await host.waitFor('it to be told', async () =>
      (await host.journal('-u', 'reeve-heartbeat.service')).some(({ message }) =>
        message.includes(`the proxy was repaired: blog had 9 instead of ${instancePort}`),
      ),
    );
    await expectNoneFailed(host);
  });

  it('serves on with a configuration that cannot be read', async () => {
    await host.write('/etc/reeve/reeve.yaml', 'commands: {\n', '0600');
    await host.output(['systemctl', 'restart', unit]);
    expect(await ask()).toBe('200');
    await configure({});
  });

  it('moves with proxy_listen_addr, and has its longer bound as time to stop (A12)', async () => {
    await configure({ proxy_listen_addr: '127.0.0.1:7201', proxy_drain_timeout: '90s' });
    await host.waitFor('the new address', async () => (await ask('http://127.0.0.1:7201/i/blog/')) === '200');
    expect((await host.show(unit, 'TimeoutStopUSec')).TimeoutStopUSec).toBe('2min');
    await configure({});
    await host.waitFor('the old address', async () => (await ask()) === '200');
  });

  it('has an empty registry after a boot (A73)', async () => {
    await host.reboot();
    await host.waitFor('the proxy to run', isActive);
    await startInstance();
    expect(await ask()).toBe('502');
    expect(await host.output(['reeve', 'proxy', 'list'])).toBe(
      'no instance is registered\nactive tunnels: 0\n',
    );
    await host.output(['reeve', 'proxy', 'set', 'blog', String(instancePort)]);
    expect(await ask()).toBe('200');
  });
});
