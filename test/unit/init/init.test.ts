import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { availableParallelism, totalmem } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Overrides } from '../../../src/lib/config/environment.ts';
import type { BaseContext } from '../../../src/lib/context.ts';
import { renderConfig } from '../../../src/lib/init/render.ts';
import { initNode } from '../../../src/lib/init/run.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { type ConfigHome, createConfigHome } from '../../support/config-home.ts';

const now = new Date('2026-03-01T12:00:00.000Z');

function baseOf(home: ConfigHome, overrides: Overrides = {}): BaseContext {
  return {
    runId: 'run-1',
    command: 'init',
    paths: home.paths,
    overrides: { LAUNCHPAD_ADVERTISE_IP: '10.0.0.5', ...overrides },
    clock: { now: () => now, sleep: () => Promise.resolve() },
    log: silentLog,
    signal: new AbortController().signal,
    interactive: false,
  };
}

async function filesBelow(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.json'))
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .toSorted();
}

async function readStored(home: ConfigHome, key: string): Promise<unknown> {
  const text = await readFile(join(home.paths.stateDir, 'store', key), 'utf8');
  expect(text).toBe(`${JSON.stringify(JSON.parse(text), null, 2)}\n`);
  return JSON.parse(text);
}

const node = {
  nodeId: 'web-1',
  clusterId: 'default',
  instanceId: null,
  instanceType: 'external',
  region: 'local',
  availabilityZone: null,
  role: 'app',
  privateIp: '10.0.0.5',
  totalCpu: availableParallelism() * 1024,
  totalMemory: Math.floor(totalmem() / 1024 / 1024),
  reservedCpu: 0,
  reservedMemory: 0,
  publicIp: null,
  eipAllocationId: null,
  securityGroupId: null,
  iamInstanceProfile: null,
  provisioning: 'external',
  advertiseIp: '10.0.0.5',
  iamUserName: null,
  agentId: 'web-1',
  agentVersion: null,
  agentType: 'rust',
  createdAt: now.toISOString(),
  createdBy: 'reeve init',
  state: 'ready',
};

const idRule = 'an id has up to 64 letters, digits, "_" and "-", and does not begin with "-"';

describe('init', () => {
  it('writes a configuration that loads, and the entry of the node (L166, L177)', async () => {
    const home = await createConfigHome();
    const outcome = await initNode(baseOf(home), { nodeId: 'web-1' });
    expect(outcome.text).toEqual([
      `wrote ${home.root}/reeve.yaml`,
      `wrote file://${home.root}/state/store/nodes/web-1/node.json`,
      'next: `reeve doctor` checks this machine, `reeve deploy FILE` gives it services',
    ]);
    expect((await stat(home.paths.configFile)).mode & 0o777).toBe(0o600);
    expect((await home.load()).cluster).toMatchObject({
      nodeId: 'web-1',
      roles: ['app'],
      store: `file://${home.root}/state/store`,
    });
    expect(await filesBelow(join(home.paths.stateDir, 'store'))).toEqual(['nodes/web-1/node.json']);
    expect(await readStored(home, 'nodes/web-1/node.json')).toEqual(node);
  });

  it('enters a box that is both twice, and its cluster where that has a name', async () => {
    const home = await createConfigHome();
    const { text } = await initNode(baseOf(home), { nodeId: 'web-1', role: 'edge, app', clusterId: 'prod' });
    expect(text.at(-1)).toMatch(/`reeve deploy FILE` .*`ingress\.edge: web-1-edge`$/);
    const prefix = 'clusters/prod/nodes';
    expect(await filesBelow(join(home.paths.stateDir, 'store'))).toEqual([
      'clusters/prod/cluster.json',
      `${prefix}/web-1-edge/edge.json`,
      `${prefix}/web-1-edge/node.json`,
      `${prefix}/web-1/node.json`,
    ]);
    const common = { ...node, clusterId: 'prod' };
    expect(await readStored(home, `${prefix}/web-1/node.json`)).toEqual(common);
    expect(await readStored(home, `${prefix}/web-1-edge/node.json`)).toEqual({
      ...common,
      nodeId: 'web-1-edge',
      role: 'edge',
    });
    expect(await readStored(home, `${prefix}/web-1-edge/edge.json`)).toEqual({
      nodeId: 'web-1-edge',
      domains: [],
      updatedAt: now.toISOString(),
    });
    expect(await readStored(home, 'clusters/prod/cluster.json')).toEqual({
      clusterId: 'prod',
      defaultEdge: 'web-1-edge',
      region: 'local',
      createdAt: now.toISOString(),
      createdBy: 'reeve init',
      autoscale: null,
      snsTopicArn: null,
    });
  });

  it('enters an edge under its own id', async () => {
    const home = await createConfigHome();
    const { text } = await initNode(baseOf(home), { nodeId: 'edge-1', role: 'edge' });
    expect(text.at(-1)).toBe(
      'next: `systemctl restart caddy`, `reeve doctor`; services name this edge with `ingress.edge: edge-1`',
    );
    expect(await filesBelow(join(home.paths.stateDir, 'store'))).toEqual([
      'nodes/edge-1/edge.json',
      'nodes/edge-1/node.json',
    ]);
    expect((await home.load()).cluster).toMatchObject({ roles: ['edge'], edgeId: 'edge-1' });
  });

  it('makes the directories above the configuration', async () => {
    const home = await createConfigHome();
    const base = baseOf(home);
    const configFile = join(home.root, 'etc/deep/reeve.yaml');
    await initNode({ ...base, paths: { ...base.paths, configFile } }, { nodeId: 'web-1' });
    expect(await readdir(join(home.root, 'etc/deep'))).toEqual(['reeve.yaml']);
  });

  it('refuses to overwrite a configuration, and touches nothing then', async () => {
    const home = await createConfigHome('# mine\n');
    await expect(initNode(baseOf(home), { nodeId: 'web-1' })).rejects.toMatchObject({
      exitCode: 78,
      message: `cannot write ${home.root}/reeve.yaml: it is there already, and init overwrites nothing: move it aside for a new one`,
    });
    expect(await readdir(home.root)).toEqual(['reeve.yaml']);
    expect(await readFile(home.paths.configFile, 'utf8')).toBe('# mine\n');
  });

  it('keeps entries that are there, so that a run that failed is repeated', async () => {
    const home = await createConfigHome();
    await home.write('state/store/nodes/web-1/node.json', '{"mine":true}\n');
    const outcome = await initNode(baseOf(home), { nodeId: 'web-1' });
    expect(outcome.text[1]).toBe(
      `kept file://${home.root}/state/store/nodes/web-1/node.json, which was there`,
    );
    expect(await readStored(home, 'nodes/web-1/node.json').catch(() => 'other')).toBe('other');
  });

  it.each([
    [{ advertiseIp: '10.0.0.9' }, {}, 'its entry has the address 10.0.0.9, and this machine has 10.0.0.5'],
    [{ advertiseIp: '10.0.0.5' }, { lastSeen: '2026-03-01T11:59:48.000Z' }, 'it has reported 12s ago'],
    [{ advertiseIp: '10.0.0.5' }, { lastSeen: '2026-03-01T11:58:48.000Z' }, undefined],
    [{ advertiseIp: null }, [], undefined],
  ])('warns of another machine of the same id by %j and %j (R61)', async (entry, status, sign) => {
    const home = await createConfigHome();
    const nodes = 'state/store/nodes/web-1';
    await home.write(`${nodes}/node.json`, JSON.stringify(entry));
    await home.write(`${nodes}/status.json`, JSON.stringify(status));
    const warnings: string[] = [];
    const log = { ...silentLog, warning: (text: string) => void warnings.push(text) };
    await initNode({ ...baseOf(home), log }, { nodeId: 'web-1' });
    const told = `another machine seems to be node "web-1": ${sign}: two of one id undo each other's work`;
    expect(warnings).toEqual(sign === undefined ? [] : [told]);
  });

  it('enters the node at the endpoint of the flag, whatever the environment says', async () => {
    const home = await createConfigHome();
    const endpoint = 'http://127.0.0.1:2';
    process.env['AWS_ACCESS_KEY_ID'] = process.env['AWS_SECRET_ACCESS_KEY'] = 'test';
    await expect(
      initNode(baseOf(home, { AWS_ENDPOINT_URL: 'http://127.0.0.1:1' }), {
        nodeId: 'web-1',
        store: 's3://state',
        endpoint,
      }),
    ).rejects.toMatchObject({ exitCode: 69, message: expect.stringContaining('ECONNREFUSED 127.0.0.1:2') });
  });

  it('lets only one of two at the same time write the configuration', async () => {
    const home = await createConfigHome();
    const runs = await Promise.allSettled(
      ['a', 'b', 'c'].map((nodeId) => initNode(baseOf(home), { nodeId })),
    );
    expect(runs.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect((await readdir(home.root)).toSorted()).toEqual(['reeve.yaml', 'state']);
    await home.load();
  });

  it.each([
    [{ role: 'both' }, 'cannot use --role "both": it is app, edge or app,edge'],
    [{ role: 'edge,edge' }, 'cannot use --role "edge,edge": it is app, edge or app,edge'],
    [{ role: '' }, 'cannot use --role "": it is app, edge or app,edge'],
    [{ nodeId: '../x' }, `cannot use --node "../x": ${idRule}`],
    [{ clusterId: '' }, `cannot use --cluster "": ${idRule}`],
    [
      { store: 'store' },
      'cannot write a configuration: cluster.store must be file:///DIRECTORY or s3://BUCKET[/PREFIX], not "store"',
    ],
    [
      { endpoint: 'http://127.0.0.1:1' },
      'cannot use --endpoint without --store s3://BUCKET: it is where the bucket is',
    ],
    [{ nodeId: 'a\nb: c' }, `cannot use --node "a\\nb: c": ${idRule}`],
  ])('refuses %j as a wrong command line, and writes nothing', async (request, message) => {
    const home = await createConfigHome();
    await expect(initNode(baseOf(home), { nodeId: 'web-1', ...request })).rejects.toMatchObject({
      exitCode: 64,
      message,
    });
    expect(await readdir(home.root)).toEqual([]);
  });

  it('says why a directory cannot be made', async () => {
    const home = await createConfigHome();
    await writeFile(join(home.root, 'file'), '');
    const store = `file://${home.root}/file/store`;
    await expect(initNode(baseOf(home), { nodeId: 'web-1', store })).rejects.toMatchObject({
      exitCode: 78,
      message: expect.stringMatching(/^cannot make directory .*\/file\/store: ENOTDIR/),
    });
  });
});

describe('the text of a new configuration', () => {
  it.each([
    ['app', ['app']],
    ['edge', ['edge']],
    ['both', ['app', 'edge']],
  ] as const)('for %s is as kept', async (name, roles) => {
    const text = renderConfig({
      nodeId: 'web-1',
      roles,
      clusterId: 'default',
      store: 'file:///var/lib/reeve/store',
      region: 'local',
      secrets: 'file:///etc/reeve/secrets',
      notify: 'none',
      logs: 'file:///var/log/reeve',
      backups: 'file:///var/backups/reeve',
    });
    await expect(text).toMatchFileSnapshot(`../../fixtures/golden/init-${name}.yaml`);
  });

  it('of a node on AWS takes secrets and notifications from there', async () => {
    const aws = { store: 's3://state/fleet', region: 'eu-west-1', secrets: 'ssm', notify: 'sns' } as const;
    const files = { logs: 'file:///var/log/reeve', backups: 'file:///var/backups/reeve' };
    const text = renderConfig({ nodeId: 'web-1', roles: ['app'], clusterId: 'prod', ...aws, ...files });
    const home = await createConfigHome(text);
    expect((await home.load()).cluster).toMatchObject(aws);
  });

  it('loads with every commented default switched on, and means the same', async () => {
    const text = renderConfig({
      nodeId: 'true',
      roles: ['app', 'edge'],
      clusterId: '007',
      store: 'file:///srv/store',
      region: 'local',
      secrets: 'file:///srv/secrets',
      notify: 'none',
      logs: 'file:///srv/logs',
      backups: 'file:///srv/backups',
    });
    const plain = await createConfigHome(text);
    const explicit = await createConfigHome(text.replaceAll(/^ {2}#(?=\w)/gm, '  '));
    const { cluster } = await plain.load();
    expect([cluster?.nodeId, cluster?.clusterId]).toEqual(['true', '007']);
    expect((await explicit.load()).cluster).toEqual({ ...cluster, advertiseIp: '10.0.0.5' });
  });
});
