import { describe, expect, it } from 'vitest';
import type { Overrides } from '../../../src/lib/config/environment.ts';
import { createConfigHome } from '../../support/config-home.ts';

const agentJson = {
  nodeId: 'app-1',
  agentId: 'agent-1',
  bucket: 'launch-pad-state-1-eu',
  region: 'eu-central-1',
  clusterId: 'prod',
  role: 'app',
  advertiseIp: '10.0.1.5',
};

async function createHome(agent: unknown, yaml = 'cluster: { file: agent.json }\n') {
  const home = await createConfigHome(yaml);
  await home.write(
    'agent.json',
    typeof agent === 'string' ? agent : `${JSON.stringify(agent, null, '\t')}\n`,
  );
  return home;
}

async function loadCluster(yaml: string, overrides: Overrides = {}) {
  const config = await (await createConfigHome(yaml)).load(overrides);
  if (config.cluster === undefined) throw new Error('no cluster');
  return { ...config.cluster, warnings: config.warnings };
}

describe('agent.json', () => {
  it('gives a node its identity and the services of AWS (L166, L167)', async () => {
    const home = await createHome(agentJson);
    const { cluster, warnings } = await home.load();
    expect(cluster).toMatchObject({
      nodeId: 'app-1',
      agentId: 'agent-1',
      clusterId: 'prod',
      roles: ['app'],
      region: 'eu-central-1',
      advertiseIp: '10.0.1.5',
      store: 's3://launch-pad-state-1-eu',
      secrets: 'ssm',
      notify: 'sns',
      logs: 'cloudwatch',
    });
    expect(warnings).toEqual([]);
  });

  it('needs neither cluster nor address (L166)', async () => {
    const { clusterId: _clusterId, advertiseIp: _ip, ...rest } = agentJson;
    const home = await createHome({ ...rest, role: 'edge' });
    const { cluster } = await home.load();
    expect([cluster?.clusterId, cluster?.advertiseIp, cluster?.roles, cluster?.edgeId]).toEqual([
      'default',
      undefined,
      ['edge'],
      'app-1',
    ]);
  });

  it('lets the keys beside it win', async () => {
    const home = await createHome(
      agentJson,
      'cluster: { file: agent.json, store: "file:///srv/store", secrets: "file:///srv/secrets", role: [app, edge] }\n',
    );
    const { cluster } = await home.load();
    expect([cluster?.store, cluster?.secrets, cluster?.roles, cluster?.edgeId]).toEqual([
      'file:///srv/store',
      'file:///srv/secrets',
      ['app', 'edge'],
      'app-1-edge',
    ]);
  });

  it('lists what is missing or wrong in it, the legacy role included (L13)', async () => {
    const home = await createHome({ nodeId: 'a/b', agentId: 'x', region: '', role: 'both' });
    expect(await home.problems()).toEqual([
      'agent.json:1:1: bucket is missing',
      'agent.json:2:12: nodeId must be an id of up to 64 letters, digits, "_" and "-", not beginning with "-", not "a/b"',
      'agent.json:4:12: region must be text that is not empty, not ""',
      'agent.json:5:10: role must be "app" or "edge" (the legacy role "both" is refused), not "both"',
    ]);
  });

  it('warns of keys that a newer version may have added', async () => {
    const home = await createHome({ ...agentJson, advertizeIp: '10.0.0.9' });
    expect(await home.warnings()).toEqual([
      'agent.json:9:2: unknown key "advertizeIp" at the top level: did you mean "advertiseIp"?',
    ]);
  });

  it('names the place where it is no JSON', async () => {
    const home = await createHome('{"nodeId": "a"\n "role": "app"}');
    expect(await home.problems()).toEqual(['agent.json:2:2: this is not valid JSON']);
  });

  it('is found by LAUNCHPAD_AGENT_CONFIG, with no reeve.yaml at all (L165, L167)', async () => {
    const home = await createConfigHome();
    const path = await home.write('elsewhere.json', JSON.stringify(agentJson));
    expect((await home.load({ LAUNCHPAD_AGENT_CONFIG: path })).cluster?.nodeId).toBe('app-1');
  });

  it('is the one LAUNCHPAD_AGENT_CONFIG names rather than the one reeve.yaml does (L165)', async () => {
    const home = await createHome(agentJson);
    const path = await home.write('other.json', JSON.stringify({ ...agentJson, nodeId: 'other' }));
    expect((await home.load({ LAUNCHPAD_AGENT_CONFIG: path })).cluster?.nodeId).toBe('other');
  });

  it('does not replace a section written inline (L165)', async () => {
    const home = await createConfigHome('cluster: { nodeId: inline }\n');
    const config = await home.load({ LAUNCHPAD_AGENT_CONFIG: '/nowhere' });
    expect([config.cluster?.nodeId, config.warnings]).toEqual([
      'inline',
      ['LAUNCHPAD_AGENT_CONFIG is ignored, as section cluster names no file'],
    ]);
  });

  it('names the file the variable names, where it is missing (L165)', async () => {
    const home = await createConfigHome();
    expect(await home.problems({ LAUNCHPAD_AGENT_CONFIG: '/nowhere/agent.json' })).toEqual([
      'cannot read /nowhere/agent.json: there is no such file',
    ]);
  });
});

describe('roles', () => {
  it.each([
    ['app', ['app'], undefined],
    ['edge', ['edge'], 'web-1'],
    ['[app, edge]', ['app', 'edge'], 'web-1-edge'],
    ['[edge, edge]', ['edge'], 'web-1'],
  ])('%s has the edge id %s', async (role, roles, edgeId) => {
    const cluster = await loadCluster(`cluster: { nodeId: web-1, role: ${role} }\n`);
    expect([cluster.roles, cluster.edgeId]).toEqual([roles, edgeId]);
  });
});

describe('variables of launch-pad', () => {
  const yaml = 'cluster: { nodeId: a, role: [app, edge], intervals: { tick: 5s, edge: 6s, stats: 7s } }\n';

  it.each([
    ['2000', 2000, []],
    ['59999', 59_999, []],
    [
      '60000',
      60_000,
      ['LAUNCHPAD_POLL_MS is 60000, not less than the 60000 after which readers call a node stale'],
    ],
    ['fast', 5000, ['LAUNCHPAD_POLL_MS "fast" is no number of milliseconds: it is ignored']],
    ['0', 5000, ['LAUNCHPAD_POLL_MS is 0, which is no interval: it is ignored']],
    ['864000000', 5000, ['LAUNCHPAD_POLL_MS is 864000000, which is no interval: it is ignored']],
  ])('LAUNCHPAD_POLL_MS=%s sets the tick to %i (L157)', async (value, tickMs, warnings) => {
    const cluster = await loadCluster(yaml, { LAUNCHPAD_POLL_MS: value });
    expect([cluster.intervals.tickMs, cluster.warnings]).toEqual([tickMs, warnings]);
  });

  it('defaults to a tick of 60000 (L3, L17, L157)', async () => {
    expect((await loadCluster('cluster: { nodeId: a }\n')).intervals.tickMs).toBe(60_000);
  });

  it('sets the cadence of an edge, but on no other node the cadence that edges are taken to have (L157)', async () => {
    const both = await loadCluster(yaml, { LAUNCHPAD_POLL_MS: '2000' });
    const app = await loadCluster('cluster: { nodeId: a }\n', { LAUNCHPAD_POLL_MS: '2000' });
    expect([both.intervals.edgeMs, app.intervals.edgeMs]).toEqual([2000, 60_000]);
  });

  it.each([
    ['10000', 10_000, []],
    ['30000', 30_000, []],
    [
      '45000',
      30_000,
      ['LAUNCHPAD_LIVENESS_MS is 45000 ms: it is cut to 30000 ms, half of what makes a node stale'],
    ],
    ['soon', 30_000, ['LAUNCHPAD_LIVENESS_MS "soon" is no number of milliseconds: 30000 is used']],
    ['-1', 30_000, ['LAUNCHPAD_LIVENESS_MS "-1" is no number of milliseconds: 30000 is used']],
  ])('LAUNCHPAD_LIVENESS_MS=%s sets the heartbeat to %i (L158)', async (value, livenessMs, warnings) => {
    const cluster = await loadCluster(yaml, { LAUNCHPAD_LIVENESS_MS: value });
    expect([cluster.intervals.livenessMs, cluster.warnings]).toEqual([livenessMs, warnings]);
  });

  it('cuts the interval of the file as well, and defaults to 30000 (L158)', async () => {
    const long = await loadCluster('cluster: { nodeId: a, intervals: { liveness: 40s } }\n');
    expect([long.intervals.livenessMs, long.warnings]).toEqual([
      30_000,
      ['cluster.intervals.liveness is 40000 ms: it is cut to 30000 ms, half of what makes a node stale'],
    ]);
    expect((await loadCluster('cluster: { nodeId: a }\n')).intervals.livenessMs).toBe(30_000);
  });

  it.each([
    ['1500', 1500],
    ['0', 0],
    ['-1', 0],
    ['often', 7000],
  ])('LAUNCHPAD_STATS_INTERVAL_MS=%s samples every %i ms, 0 never (L159)', async (value, statsMs) => {
    const cluster = await loadCluster(yaml, { LAUNCHPAD_STATS_INTERVAL_MS: value });
    expect(cluster.intervals.statsMs).toBe(statsMs);
  });

  it.each<[string, string, object, string]>([
    ['LAUNCHPAD_STATS_SERVICES', '0', { statsServices: false }, 'L160'],
    ['LAUNCHPAD_STATS_SERVICES', '1', { statsServices: true }, 'L160'],
    ['LAUNCHPAD_ONCE', '1', { once: true }, 'L161'],
    ['LAUNCHPAD_ONCE', '0', { once: false }, 'L161'],
    ['LAUNCHPAD_DEBUG_S3', '1', { debugStore: true }, 'L162'],
    ['LAUNCHPAD_CADDY_ADMIN', 'localhost:2019', { caddy: { admin: 'http://localhost:2019' } }, 'L163'],
    ['LAUNCHPAD_CADDY_ADMIN', 'http://[::1]:2020/', { caddy: { admin: 'http://[::1]:2020' } }, 'L163'],
    ['LAUNCHPAD_STATE', '/srv/state.json', { importState: '/srv/state.json' }, 'L164'],
    ['LAUNCHPAD_ADVERTISE_IP', '10.9.9.9', { advertiseIp: '10.9.9.9' }, 'L166'],
    ['LAUNCHPAD_AGENT_VERSION', '1.2.3', { agentVersion: '1.2.3' }, 'L166'],
    ['AWS_ENDPOINT_URL', 'http://127.0.0.1:1', { endpoint: 'http://127.0.0.1:1' }, 'L166'],
  ])('%s=%s gives %j (%s)', async (name, value, expected) => {
    expect(await loadCluster(yaml, { [name]: value })).toMatchObject(expected);
  });

  it.each([
    ['LAUNCHPAD_ADVERTISE_IP', 'web-1', 'LAUNCHPAD_ADVERTISE_IP must be an IP address, not "web-1"'],
    ['LAUNCHPAD_CADDY_ADMIN', 'a b', 'LAUNCHPAD_CADDY_ADMIN must be an address, not "a b"'],
    ['AWS_ENDPOINT_URL', 'x', 'AWS_ENDPOINT_URL must be a URL that begins with http:// or https://'],
  ])('refuses %s=%s (L163, L166)', async (name, value, problem) => {
    const home = await createConfigHome(yaml);
    expect(await home.problems({ [name]: value })).toEqual([problem]);
  });

  it('has an address for publishing from the environment', async () => {
    const cluster = await loadCluster('cluster: { nodeId: a, publish: advertise }\n', {
      LAUNCHPAD_ADVERTISE_IP: '10.9.9.9',
    });
    expect([cluster.publish, cluster.advertiseIp]).toEqual(['advertise', '10.9.9.9']);
  });
});

describe('a URL of a file', () => {
  it.each([
    ['store', 'file:///srv/a%2Fb'],
    ['secrets', 'file:///srv/a%zz'],
    ['logs', 'file:///srv/%ff'],
    ['backups', 'file:///srv/%00'],
  ])('is refused where it names no directory: cluster.%s = %s', async (key, url) => {
    const home = await createConfigHome(`cluster: { nodeId: a, ${key}: "${url}" }\n`);
    const [problem, ...others] = await home.problems();
    expect(others).toEqual([]);
    expect(problem).toMatch(
      new RegExp(
        `cluster\\.${key} must be file:///DIRECTORY, and "${url}" has an escape that no path can have$`,
      ),
    );
  });

  it('may name one with blanks, percents and quotes', async () => {
    const cluster = await loadCluster('cluster: { nodeId: a, store: "file:///srv/a%20b%25%22" }\n');
    expect(cluster.store).toBe('file:///srv/a%20b%25%22');
  });
});
