// A node that launch-pad's agent has kept: reeve does not work beside it, and takes over without replacing anything.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { configStamp } from '../../src/lib/cluster/stamp.ts';
import { aService } from '../support/builders.ts';
import { type Host, startHost } from '../support/host.ts';
import { describeInstalled, type Installed, provision } from '../support/installed.ts';
import { aWebDeploy } from '../support/services.ts';
import { describeHost } from '../support/system.ts';

const agent = 'launch-pad-agent.service';
const hostPort = 27_999;

const web = aService({
  image: 'reeve-demo/web:v1',
  memory: 64,
  ingress: { domain: 'web.example.com', port: 8080, edge: 'edge-1' },
  healthCheck: { path: '/healthz', intervalMs: 200, timeoutMs: 2000, healthyThreshold: 2 },
  rollout: { maxSurge: 1, drainTimeout: '0s', stopGrace: '5s' },
});

describeHost('a machine with launch-pad’s agent', () => {
  let host: Host;
  let node: Installed;
  let directory: string;
  beforeAll(async () => {
    host = startHost('web-1');
    directory = await provision(host);
    node = describeInstalled(host);
    await host.write(
      `/etc/systemd/system/${agent}`,
      '[Service]\nExecStart=/bin/sleep infinity\nRestart=always\n[Install]\nWantedBy=multi-user.target\n',
    );
    await host.output(['systemctl', 'enable', '--now', agent]);
    await host.write(
      '/var/lib/launch-pad/state.json',
      JSON.stringify({ ports: { 'blog/web#0': hostPort }, cronFires: {} }),
    );
    await host.output(['docker', 'network', 'create', 'launchpadnet_blog']);
    await host.output(['docker', 'run', '-d', ...asTheAgentDoes(), web.image]);
  });
  afterAll(() => host?.stop());

  /** Labels, names and ports of wire.md, without ours. */
  function asTheAgentDoes(): string[] {
    const labels = {
      'launchpad.managed': 'true',
      'launchpad.project': web.project,
      'launchpad.service': web.service,
      'launchpad.image': web.image,
      'launchpad.replica': '0',
      'launchpad.cpu': `${web.cpu}`,
      'launchpad.memory': `${web.memory}`,
      'launchpad.configStamp': configStamp(web),
    };
    return [
      ...['--name', 'launchpad_blog_web_0', '--restart', 'unless-stopped'],
      ...['--network', 'launchpadnet_blog', '--network-alias', 'web', '--publish', `${hostPort}:8080`],
      ...Object.entries(labels).flatMap(([label, value]) => ['--label', `${label}=${value}`]),
    ];
  }

  it('refuses an install, names the agent and changes nothing', async () => {
    expect(await host.run([`${directory}/scripts/install`])).toEqual({
      status: 78,
      signal: null,
      stdout: '',
      stderr: `install: these do the same work here: ${agent}. Take over from them with --take-over, or stop and disable them\n`,
    });
    expect(await host.show(agent, 'ActiveState', 'UnitFileState')).toEqual({
      ActiveState: 'active',
      UnitFileState: 'enabled',
    });
    expect(await host.exists('/opt/reeve')).toBe(false);
  });

  it('with --take-over stops and disables it, and adopts its containers and ports as they are (L37, L178)', async () => {
    const before = await node.containers();
    expect(before).toHaveLength(1);
    const said = await host.output([`${directory}/scripts/install`, '--take-over']);
    expect(said).toContain(`stopped and disabled ${agent} (back: systemctl enable --now ${agent})`);
    expect(await host.show(agent, 'ActiveState', 'UnitFileState')).toEqual({
      ActiveState: 'inactive',
      UnitFileState: 'disabled',
    });

    await node.init();
    await node.deploy([aWebDeploy({ replicas: 1 })]);
    await node.settled('reeve-demo/web:v1');
    expect(await node.containers()).toEqual(before);
    expect(JSON.parse(await host.read('/var/lib/reeve/ports.json'))).toEqual({
      version: 1,
      ports: { 'blog/web#0': hostPort },
    });
    expect((await node.shard()).backends).toEqual([
      { domain: 'web.example.com', hostPort, healthPath: '/healthz' },
    ]);
    expect(await node.ask('/')).toMatch(/^web v1 /);
    // The deploy is all that has happened.
    expect(await node.must('history')).toMatch(/^\S+ +\S+ +add blog\/web: deploy .*\n$/);
  });

  it('stays with reeve after a reboot', async () => {
    const before = await node.containers();
    await host.reboot();
    const since = new Date().toISOString();
    await host.waitFor('a tick', async () => ((await node.runOf('reconcile')).endedAt ?? '') > since);
    await node.settled('reeve-demo/web:v1');
    expect((await node.containers()).map(({ id }) => id)).toEqual(before.map(({ id }) => id));
    expect((await host.show(agent, 'ActiveState')).ActiveState).toBe('inactive');
  });
});
