// What becomes of a machine when reeve comes, is replaced, and goes.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Host, startHost } from '../support/host.ts';
import { describeInstalled, type Installed, provision } from '../support/installed.ts';
import { aWebDeploy } from '../support/services.ts';
import { describeHost } from '../support/system.ts';

const agent = `[Service]
ExecStart=/bin/sleep infinity
[Install]
WantedBy=multi-user.target
`;

/** Soon enough to be waited for, and long enough that a heartbeat stays content with a busy machine. */
const intervals = { tick: '5s', liveness: '15s' };

/** A redeploy that is under way when reeve takes over, and has to come to its end. */
const runner = `[Service]
Type=oneshot
ExecStart=/bin/sh -c 'sleep 2; touch /root/redeployed'
`;

/** Tells what a unit's sandbox lets it do: yes or no, one line each. */
const probe = `#!/bin/sh
connect() {
  /opt/reeve/current/runtime/node -e 'require("net").connect(process.argv[1])
    .on("connect", () => process.exit(0)).on("error", () => process.exit(1))' "$1"
}
try() { if eval "$1" 2>/dev/null; then echo "$1: yes"; else echo "$1: no"; fi >>/run/reeve/probe; }
try 'connect /run/docker.sock'
try 'connect /run/dbus/system_bus_socket'
try 'connect /run/systemd/private'
try 'test -s /etc/shadow'
try 'ls -A /root | grep -q .'
try 'ls -A /etc/ssh | grep -q .'
try 'touch /usr/probe'
try 'touch /etc/reeve/probe'
try 'touch /var/lib/reeve/probe'
try 'touch /root/opened/probe'
try 'grep -q "^CapBnd:.*[1-9a-f]" /proc/self/status'
`;

describeHost('an installed machine', () => {
  let host: Host;
  let node: Installed;
  let directory: string;
  beforeAll(async () => {
    host = startHost('web-1');
    directory = await provision(host);
    node = describeInstalled(host);
  });
  afterAll(() => host?.stop());

  async function probeSandbox(unit: string): Promise<string[]> {
    const dropIn = `/run/systemd/system/${unit}.service.d/probe.conf`;
    await host.write(dropIn, '[Service]\nExecStart=\nExecStart=/usr/local/sbin/probe\n');
    await host.sh(`rm -f /run/reeve/probe; systemctl daemon-reload; systemctl start ${unit}`);
    const lines = (await host.read('/run/reeve/probe')).trim().split('\n');
    await host.sh(`rm -r /run/systemd/system/${unit}.service.d; systemctl daemon-reload`);
    return lines.map((line) => line.replace(/^.*?([^ ]+): (yes|no)$/, '$1 $2'));
  }

  async function tickOnce(): Promise<void> {
    const before = await node.runOf('reconcile');
    await host.waitFor('a tick', async () => {
      const run = await node.runOf('reconcile');
      return run.runId !== before.runId && run.endedAt !== null;
    });
  }

  it('is refused while another agent is at work, which stops only when told so', async () => {
    await host.write('/etc/systemd/system/launch-pad-agent.service', agent);
    await host.write('/etc/systemd/system/deploy-runner.service', runner);
    await host.sh('systemctl daemon-reload; systemctl enable --now --quiet launch-pad-agent.service');
    const refused = await host.run([`${directory}/scripts/install`]);
    expect(refused).toMatchObject({
      status: 78,
      stderr:
        'install: these do the same work here: launch-pad-agent.service. Take over from them with --take-over, or stop and disable them\n',
    });
    expect(await host.exists('/opt/reeve')).toBe(false);
    await host.sh('systemctl start --no-block deploy-runner.service');
    const text = await host.output([`${directory}/scripts/install`, '--take-over']);
    expect(text).toContain('stopped and disabled launch-pad-agent.service');
    expect(await host.exists('/root/redeployed')).toBe(true);
    const { ActiveState, UnitFileState } = await host.show(
      'launch-pad-agent.service',
      'ActiveState',
      'UnitFileState',
    );
    expect({ ActiveState, UnitFileState }).toEqual({ ActiveState: 'inactive', UnitFileState: 'disabled' });
    expect((await host.run([`${directory}/scripts/install`])).status).toBe(0);
    await node.init();
    await node.deploy([aWebDeploy()]);
    await node.settled('reeve-demo/web:v1');
  });

  it('keeps out of sight of a unit what it does not need, and opens what a configuration moves', async () => {
    await host.write('/usr/local/sbin/probe', probe, '0755');
    // Timers would start the probes' units as well.
    await host.sh("systemctl stop reeve.target; systemctl stop 'reeve-*.service'");
    await host.sh('mkdir -p /etc/ssh /root/opened; touch /etc/ssh/key');
    const closed = {
      '/run/docker.sock': 'no',
      '/run/dbus/system_bus_socket': 'no',
      '/run/systemd/private': 'no',
      '/etc/shadow': 'no',
      '/usr/probe': 'no',
      '/etc/reeve/probe': 'no',
      '/var/lib/reeve/probe': 'yes',
      '/root/opened/probe': 'no',
    };
    const seen = async (unit: string): Promise<Record<string, string>> =>
      Object.fromEntries(
        (await probeSandbox(unit))
          .map((line) => line.split(' ') as [string, string])
          .filter(([what]) => what.startsWith('/run') || what in closed),
      );
    expect(await seen('reeve-heartbeat')).toEqual(closed);
    expect(await seen('reeve-reconcile')).toEqual({ ...closed, '/run/docker.sock': 'yes' });
    // Of homes and keys there is nothing, nor a capability.
    for (const unit of ['reeve-heartbeat', 'reeve-prune', 'reeve-reconcile']) {
      const rest = (await probeSandbox(unit)).filter((line) => /^(\.|\/proc\/self\/status)/.test(line));
      expect(rest).toEqual(['. no', '. no', '/proc/self/status no']);
    }
    await node.configure({ cluster: { store: 'file:///root/opened', intervals } });
    expect(await seen('reeve-heartbeat')).toEqual({ ...closed, '/root/opened/probe': 'yes' });
    await node.configure({ cluster: { intervals } });
    await host.sh('systemctl start reeve.target');
    expect(await node.must('units', 'verify')).toMatch(/^\d+ units are right\n$/);
  });

  it('is upgraded while ticks run, without one that fails', async () => {
    await tickOnce();
    const since = Math.floor(Date.now() / 1000);
    await host.sh('cp -r "$(ls -d /root/reeve-*/)" /root/next');
    for (const mark of ['a', 'b', 'c']) {
      await host.sh(`echo ${mark} >>/root/next/CHANGELOG.md; /root/next/scripts/install`);
      await tickOnce();
    }
    expect((await host.sh('ls /opt/reeve/releases')).trim().split('\n')).toHaveLength(2);
    await host.output(['/opt/reeve/previous/scripts/install']);
    const lines = await host.journal('--since', `@${since}`, '--unit', 'reeve-*');
    const told = lines.map(({ message }) => message);
    expect(told.filter((message) => /Failed|Triggering OnFailure/.test(message))).toEqual([]);
    expect(told.filter((message) => message.startsWith('Finished reeve-reconcile')).length).toBeGreaterThan(
      0,
    );
    expect(await node.ask('/')).toMatch(/^web v1 on /);
  });

  it('is left with its containers, its configuration and its state when reeve goes', async () => {
    const containers = await node.containers();
    const text = await host.output(['/opt/reeve/current/scripts/uninstall']);
    expect(text).toContain('the containers it has started go on running');
    expect(await host.output(['systemctl', 'list-units', '--all', '--no-legend', 'reeve*'])).toBe('');
    expect(
      await host.sh('ls -d /opt/reeve /run/reeve /var/cache/reeve /usr/local/bin/reeve 2>/dev/null || true'),
    ).toBe('');
    expect(await host.exists('/etc/reeve/reeve.yaml')).toBe(true);
    expect(await node.containers()).toEqual(containers);
    // What comes back goes on where that ended, with nothing more to type.
    await host.output([`${directory}/scripts/install`]);
    await tickOnce();
    expect((await node.status()).services[0]?.state).toBe('running');
    expect(await node.containers()).toEqual(containers);
    await host.output(['/opt/reeve/current/scripts/uninstall', '--purge', '--yes']);
    expect(await host.sh('ls -d /etc/reeve /var/lib/reeve /var/log/reeve 2>/dev/null || true')).toBe('');
    expect(await node.containers()).toEqual(containers);
  });
});
