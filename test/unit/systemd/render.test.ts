import { describe, expect, it } from 'vitest';
import type { Config } from '../../../src/lib/config/config.ts';
import { type DropIn, findEnabled, renderDropIns } from '../../../src/lib/systemd/render.ts';
import { createConfigHome } from '../../support/config-home.ts';

const usual = {
  nodeId: 'web-1',
  store: 'file:///var/lib/reeve/store',
  secrets: 'file:///etc/reeve/secrets',
  backups: 'file:///var/backups/reeve',
};

async function load(cluster: object): Promise<Config> {
  return (await createConfigHome(JSON.stringify({ cluster: { ...usual, ...cluster } }))).load();
}

async function render(cluster: object, configFile?: string): Promise<DropIn[]> {
  return renderDropIns(await load(cluster), configFile);
}

/** Without comments and empty lines. */
async function settings(cluster: object, unit: string): Promise<string[]> {
  const dropIn = (await render(cluster)).find((other) => other.unit === unit);
  return dropIn?.text.split('\n').filter((line) => line !== '' && !line.startsWith('#')) ?? [];
}

function asText(dropIns: readonly DropIn[]): string {
  return dropIns.map(({ unit, text }) => `==> ${unit}.d/50-reeve.conf\n${text}`).join('\n');
}

describe('drop-ins', () => {
  it('are none for a configuration that changes nothing', async () => {
    expect(await render({})).toEqual([]);
    expect(await render({ docker: { socket: '/run/docker.sock' } })).toEqual([]);
    expect(await render({ store: 's3://bucket', region: 'eu-central-1', secrets: 'ssm' })).toEqual([]);
    expect(renderDropIns({})).toEqual([]);
  });

  it('carry what a configuration moves and how often it wants things', async () => {
    const cluster = {
      store: 'file:///srv/reeve/store/',
      secrets: 'file:///home/ops/secrets',
      docker: { socket: '/run/user/1000/podman/podman.sock' },
      intervals: { tick: '45s', liveness: '2s' },
    };
    await expect(asText(await render(cluster))).toMatchFileSnapshot('../../fixtures/golden/drop-ins.txt');
  });

  it('begin a short interval soon, and keep it to a tenth of a second', async () => {
    expect(await settings({ intervals: { tick: '250ms' } }, 'reeve-reconcile.timer')).toEqual([
      '[Timer]',
      'OnActiveSec=',
      'OnActiveSec=1250ms',
      'OnUnitInactiveSec=250ms',
      'AccuracySec=100ms',
      'RandomizedDelaySec=0',
      'FixedRandomDelay=no',
    ]);
  });

  it('open a store outside of our directories for those that write to it', async () => {
    const cluster = { store: 'file:///mnt/shared/store' };
    const opened = ['[Service]', 'ReadWritePaths=-/mnt/shared/store'];
    expect(await settings(cluster, 'reeve-reconcile.service')).toEqual(opened);
    expect(await settings(cluster, 'reeve-heartbeat.service')).toEqual(opened);
    expect(await settings(cluster, 'reeve-prune.service')).toEqual([]);
    expect(await settings({ store: 'file:///var/lib/reeve/other' }, 'reeve-reconcile.service')).toEqual([]);
    expect(await settings({ store: 'file:///var/lib/reeve-2' }, 'reeve-reconcile.service')).toEqual([
      '[Service]',
      'ReadWritePaths=-/var/lib/reeve-2',
    ]);
  });

  it('let the backup write where backups go, and nobody else', async () => {
    const cluster = { backups: 'file:///mnt/backups' };
    expect(await settings(cluster, 'reeve-backup.service')).toEqual([
      '[Service]',
      'ReadWritePaths=-/mnt/backups',
    ]);
    expect((await render(cluster)).map(({ unit }) => unit)).toEqual([
      'reeve-backup.service',
      'reeve-backup-verify.service',
    ]);
    expect(await render({ backups: 'file:///var/backups/reeve/here' })).toEqual([]);
  });

  it('bind a store below /tmp, which each service has of its own', async () => {
    const cluster = { store: 'file:///tmp/demo/store' };
    expect(await settings(cluster, 'reeve-heartbeat.service')).toEqual([
      '[Service]',
      'BindPaths=-/tmp/demo/store',
    ]);
    expect(await settings(cluster, 'reeve-prune.service')).toEqual([
      '[Service]',
      'BindReadOnlyPaths=-/tmp/demo/store',
    ]);
  });

  it('hide a moved engine socket from those that do not talk to the engine', async () => {
    const cluster = { docker: { socket: '/srv/engine/docker.sock' } };
    expect(await settings(cluster, 'reeve-heartbeat.service')).toEqual([
      '[Service]',
      'InaccessiblePaths=-/srv/engine/docker.sock',
    ]);
    expect(await settings(cluster, 'reeve-reconcile.service')).toEqual([]);
  });

  it('bind a socket that is in /tmp itself without the rest of /tmp', async () => {
    expect(await settings({ docker: { socket: '/tmp/docker.sock' } }, 'reeve-reconcile.service')).toEqual([
      '[Service]',
      'BindReadOnlyPaths=-/tmp/docker.sock',
    ]);
  });

  it('take odd names literally', async () => {
    const odd = 'file:///srv/a%20b%22c%5Cd%25i:e';
    expect(await settings({ store: odd }, 'reeve-heartbeat.service')).toEqual([
      '[Service]',
      'ReadWritePaths="-/srv/a b\\"c\\\\d%%i:e"',
    ]);
    expect(await settings({ store: odd.replace('/srv', '/tmp') }, 'reeve-heartbeat.service')).toEqual([
      '[Service]',
      'BindPaths="-/tmp/a b\\"c\\\\d%%i\\:e"',
    ]);
  });

  it('are refused for a path that no unit file can hold', async () => {
    const config = await load({ store: 'file:///srv/a%0AExecStart=x' });
    expect(() => renderDropIns(config)).toThrow(
      'cannot write units: "-/srv/a\\nExecStart=x" has control characters, which no unit file can hold',
    );
  });

  it('name a configuration file that is not the usual one, and reach it', async () => {
    const dropIns = await render({}, '/root/node/reeve.yaml');
    expect(dropIns.map(({ unit }) => unit)).toEqual([
      'reeve-reconcile.service',
      'reeve-heartbeat.service',
      'reeve-backup.service',
      'reeve-backup-verify.service',
      'reeve-prune.service',
      'reeve-failed@.service',
    ]);
    const text = dropIns.at(-1)?.text ?? '';
    expect(text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))).toEqual([
      '[Service]',
      'Environment=REEVE_CONFIG=/root/node/reeve.yaml',
      'ProtectHome=tmpfs',
      'InaccessiblePaths=',
      'InaccessiblePaths=-/run/docker.sock -/run/podman -/run/containerd -/run/crio -/run/dbus/system_bus_socket -/run/systemd/private -/etc/shadow -/etc/gshadow -/etc/ssh -/var/lib/docker -/var/lib/containers -/var/lib/containerd -/etc/reeve/secrets -/etc/reeve/docker -/etc/ploy -/run/ploy',
      'BindReadOnlyPaths=-/root/node',
    ]);
  });
});

describe('an edge', () => {
  const edge = { role: 'edge', nodeId: 'edge-1' };
  const units = async (cluster: object): Promise<string[]> =>
    (await render({ ...edge, ...cluster })).map(({ unit }) => unit);

  it('has drop-ins for Caddy and for what wakes it', async () => {
    await expect(asText(await render(edge))).toMatchFileSnapshot('../../fixtures/golden/drop-ins-edge.txt');
  });

  it('is not woken by a store that is no directory', async () => {
    expect(await units({ store: 's3://bucket', region: 'eu-central-1', secrets: 'ssm' })).toEqual([
      'caddy.service',
    ]);
  });

  it('watches its own directory: that of its cluster, of its id, with any name', async () => {
    const watched = async (cluster: object): Promise<string[]> =>
      await settings({ ...edge, ...cluster }, 'reeve-edge.path');
    expect(await watched({ role: ['app', 'edge'], nodeId: 'box' })).toEqual([
      '[Path]',
      'PathChanged=/var/lib/reeve/store/nodes/box-edge/upstream',
    ]);
    expect(await watched({ clusterId: 'blue', edgeId: 'front', store: 'file:///srv/a%20b%25i%22/' })).toEqual(
      ['[Path]', 'PathChanged=/srv/a b%%i"/clusters/blue/nodes/front/upstream'],
    );
  });

  it('asks as often as its interval says, which an app node’s timers do not follow', async () => {
    const intervals = { edge: '2s' };
    expect(await settings({ ...edge, intervals }, 'reeve-edge.timer')).toEqual([
      '[Timer]',
      'OnActiveSec=',
      'OnActiveSec=2s',
      'OnUnitInactiveSec=2s',
      'AccuracySec=100ms',
      'RandomizedDelaySec=0',
      'FixedRandomDelay=no',
    ]);
    expect(await render({ intervals })).toEqual([]);
  });

  it('moves the balancer’s socket and directory, where HAProxy balances', async () => {
    const haproxy = { address: '127.0.0.1:7400', directory: '/srv/balancer 1/' };
    expect(await settings({ ...edge, haproxy }, 'reeve-balancer.socket')).toEqual([
      '[Socket]',
      'ListenStream=',
      'ListenStream=127.0.0.1:7400',
    ]);
    expect(await settings({ ...edge, haproxy }, 'reeve-balancer.service')).toEqual([
      '[Service]',
      'ReadWritePaths="-/srv/balancer 1"',
      'Environment="REEVE_BALANCER_DIRECTORY=/srv/balancer 1"',
    ]);
    expect(await units({ haproxy, balancer: 'caddy' })).toEqual(['reeve-edge.path', 'caddy.service']);
  });

  it('opens a balancer’s directory below /tmp to its look', async () => {
    const haproxy = { directory: '/tmp/demo/balancer' };
    expect(await settings({ ...edge, haproxy }, 'reeve-edge.service')).toEqual([
      '[Service]',
      'BindReadOnlyPaths=-/tmp/demo/balancer',
    ]);
  });

  it('switches the balancer on unless Caddy balances, and leaves to HAProxy whether there is one', async () => {
    const enabled = async (cluster: object): Promise<string[]> => findEnabled(await load(cluster));
    const balancer = ['reeve-balancer.socket', 'reeve-balancer.service'];
    expect(await enabled({})).toEqual(['reeve-app.target']);
    expect(await enabled(edge)).toEqual(['reeve-edge.target', ...balancer]);
    expect(await enabled({ ...edge, balancer: 'haproxy' })).toEqual(['reeve-edge.target', ...balancer]);
    expect(await enabled({ ...edge, balancer: 'caddy' })).toEqual(['reeve-edge.target']);
    expect(findEnabled({})).toEqual([]);
  });
});

describe('a node whose deploys notify', () => {
  const notified = { notify: 'sns', region: 'eu-central-1' };
  const enabled = async (cluster: object): Promise<string[]> => findEnabled(await load(cluster));

  it('listens, whatever its role', async () => {
    expect(await enabled(notified)).toEqual(['reeve-app.target', 'reeve-listen.timer']);
    const edge = { ...notified, role: 'edge', balancer: 'caddy' };
    expect(await enabled(edge)).toEqual(['reeve-edge.target', 'reeve-listen.timer']);
    expect(await enabled({ ...notified, role: ['app', 'edge'], balancer: 'caddy' })).toEqual([
      'reeve-app.target',
      'reeve-edge.target',
      'reeve-listen.timer',
    ]);
  });

  it('needs no drop-in for it, but for a configuration that is elsewhere', async () => {
    expect(await render(notified)).toEqual([]);
    const units = (await render(notified, '/srv/reeve.yaml')).map(({ unit }) => unit);
    expect(units).toContain('reeve-listen.service');
  });

  it('is none that only deploys', async () => {
    const home = await createConfigHome(JSON.stringify({ cluster: notified }));
    expect(findEnabled(await home.load())).toEqual([]);
  });
});
