import { describe, expect, it } from 'vitest';
import type { Config } from '../../../src/lib/config/config.ts';
import type { Overrides } from '../../../src/lib/config/environment.ts';
import { parseEnvironment } from '../../../src/lib/systemd/parse.ts';
import { type DropIn, findEnabled, renderDropIns } from '../../../src/lib/systemd/render.ts';
import { createConfigHome } from '../../support/config-home.ts';

const ploy = { server_url: 'https://ploy.example', node_id: 'node-1' };
const tls = {
  enabled: true,
  cert_path: '/etc/ploy/pki/node.crt',
  key_path: '/etc/ploy/pki/node.key',
  ca_path: '/etc/ploy/pki/ca.crt',
};
const cluster = { nodeId: 'web-1', store: 'file:///var/lib/reeve/store' };

async function load(sections: object): Promise<Config> {
  return (await createConfigHome(JSON.stringify(sections))).load();
}

async function render(sections: object, environment: Overrides = {}): Promise<DropIn[]> {
  const { cluster: one, jobs } = await load(sections);
  return renderDropIns({
    ...(one === undefined ? {} : { cluster: one }),
    ...(jobs === undefined ? {} : { jobs }),
    environment,
  });
}

/** Without comments and empty lines. */
async function settings(sections: object, unit: string, environment?: Overrides): Promise<string[]> {
  const dropIn = (await render(sections, environment)).find((other) => other.unit === unit);
  return dropIn?.text.split('\n').filter((line) => line !== '' && !line.startsWith('#')) ?? [];
}

const timer = 'reeve-heartbeat.timer';

describe('a node with jobs', () => {
  it('is switched on by its section, with or without a cluster', async () => {
    expect(findEnabled(await load({ jobs: ploy }))).toEqual(['reeve-jobs.target']);
    expect(findEnabled(await load({ cluster, jobs: ploy }))).toEqual([
      'reeve-app.target',
      'reeve-jobs.target',
    ]);
    expect(findEnabled(await load({ cluster }))).toEqual(['reeve-app.target']);
  });

  it('has the drop-ins of a certificate that is exchanged here', async () => {
    const dropIns = await render({ jobs: { ...ploy, http: { tls } } });
    const text = dropIns.map((one) => `==> ${one.unit}.d/50-reeve.conf\n${one.text}`).join('\n');
    await expect(text).toMatchFileSnapshot('../../fixtures/golden/drop-ins-jobs.txt');
  });

  it('beats at once where no tick has to come first (P72), and as often as it is told (P19)', async () => {
    expect(await settings({ jobs: ploy }, timer)).toEqual([
      '[Timer]',
      'OnActiveSec=',
      'OnActiveSec=1s',
      'OnUnitInactiveSec=30s',
    ]);
    const jobs = { ...ploy, heartbeat: { interval: '10s' } };
    expect(await settings({ jobs }, timer)).toContain('OnUnitInactiveSec=10s');
  });

  it('beats as often as the more impatient of its two sections wants', async () => {
    const every = async (interval: string, liveness: string): Promise<string[]> => {
      const jobs = { ...ploy, heartbeat: { interval } };
      return await settings({ jobs, cluster: { ...cluster, intervals: { liveness } } }, timer);
    };
    expect(await every('10s', '20s')).toContain('OnUnitInactiveSec=10s');
    expect(await every('25s', '20s')).toContain('OnUnitInactiveSec=20s');
    expect(await every('30s', '30s')).toEqual([]);
  });

  it.each([
    [':8444', undefined],
    ['127.0.0.1:9000', '127.0.0.1:9000'],
    ['localhost:9000', '127.0.0.1:9000'],
    [':9000', '9000'],
    ['[::1]:9000', '[::1]:9000'],
  ])('is called at %s (P8)', async (listen, stream) => {
    const found = await settings({ jobs: { ...ploy, http: { listen, tls } } }, 'reeve-api-jobs.socket');
    const wanted = ['[Socket]', 'ListenStream=', `ListenStream=${stream}`];
    expect(found).toEqual(stream === undefined ? [] : wanted);
  });

  it('may write workspaces where PLOYD_CACHE_HOME is, and nobody else may', async () => {
    const environment = { PLOYD_CACHE_HOME: '/srv/ploy' };
    const opened = [
      '[Service]',
      'ReadWritePaths=-/srv/ploy',
      'ExecStartPre=+/bin/mkdir -p -m 0750 -- /srv/ploy',
    ];
    for (const unit of ['reeve-job@.service', 'reeve-claim.service']) {
      expect(await settings({ jobs: ploy }, unit, environment)).toEqual(opened);
    }
    expect(await settings({ jobs: ploy }, 'reeve-api-jobs.service', environment)).toEqual([]);
    const home = { PLOYD_CACHE_HOME: '/home/ploy' };
    expect(await settings({ jobs: ploy }, 'reeve-job@.service', home)).toContain('BindPaths=-/home/ploy');
  });

  it('reads its token where it is put', async () => {
    const environment = { PLOY_NODE_BEARER_TOKEN_PATH: '/srv/secret/token' };
    const found = await settings({ jobs: { ...ploy, http: { tls } } }, 'reeve-claim.service', environment);
    expect(found).toContain('ReadWritePaths=-/srv/secret');
    expect(found).toContain('ExecStartPre=+/bin/mkdir -p -m 0750 -- /etc/ploy/pki /srv/secret /run/ploy');
  });
});

describe('/etc/reeve/environment', () => {
  it('is read as systemd does', () => {
    const text =
      '# PLOYD_CACHE_HOME=/no\nPLOYD_CACHE_HOME="/srv/a b"\n  TMPDIR=/x  \n;y=1\nA=\'b\'\nnonsense\n';
    expect(parseEnvironment(text)).toEqual({ PLOYD_CACHE_HOME: '/srv/a b', TMPDIR: '/x', A: 'b' });
  });
});
