import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { describeConfig } from '../../../src/lib/config/show.ts';
import { createConfigHome } from '../../support/config-home.ts';

const example = await readFile(new URL('../../fixtures/config/reeve.yaml', import.meta.url), 'utf8');

describe('loadConfig', () => {
  it('keeps every documented key with the value written, secrets hidden only when shown', async () => {
    const home = await createConfigHome(example);
    const config = await home.load();
    const written = parse(example) as Record<string, Record<string, unknown>>;
    expect(describeConfig(config)).toEqual({
      ...written,
      commands: { ...written['commands'], token: '***' },
      hooks: {
        failure: {
          command: ['/usr/local/bin/page', '{unit}'],
          url: 'https://hc.example/***',
          timeout: '11s',
        },
      },
    });
    expect(config.commands?.token).toBe('tok-3f9c');
    expect(config.hooks.failure).toEqual({
      command: ['/usr/local/bin/page', '{unit}'],
      url: 'https://hc.example/abc',
      timeoutMs: 11_000,
    });
    expect(config.warnings).toEqual([]);
  });

  it('is shown as a document that loads to the same configuration', async () => {
    const home = await createConfigHome(example);
    const config = await home.load();
    const { stringify } = await import('yaml');
    const again = await createConfigHome(
      stringify(describeConfig({ ...config, commands: undefined as never, hooks: {} })),
    );
    const { commands: _commands, hooks: _hooks, file: _file, ...rest } = config;
    expect(await again.load()).toEqual({ ...rest, hooks: {}, file: again.paths.configFile });
  });

  it('fills in the defaults of a node from its id alone', async () => {
    const home = await createConfigHome('cluster: { nodeId: web-1 }\n');
    expect((await home.load()).cluster).toEqual({
      nodeId: 'web-1',
      agentId: 'web-1',
      clusterId: 'default',
      roles: ['app'],
      region: 'local',
      publish: '0.0.0.0',
      store: `file://${home.root}/state/store`,
      secrets: `file://${home.root}/secrets`,
      notify: 'none',
      logs: `file://${home.root}/state/logs`,
      backups: `file://${home.root}/state/backups`,
      intervals: { tickMs: 60_000, livenessMs: 30_000, statsMs: 60_000, edgeMs: 60_000 },
      docker: { socket: '/var/run/docker.sock', parallel: 4 },
      caddy: { admin: 'http://127.0.0.1:2019', httpPort: 80, httpsPort: 443, issuer: 'acme' },
      balancer: 'auto',
      haproxy: { address: '127.0.0.1:7300', directory: '/run/reeve-balancer' },
      agentVersion: '0.0.0',
      statsServices: true,
      debugStore: false,
      once: false,
      importState: '/var/lib/launch-pad/state.json',
    });
  });

  it('lets an operator machine that only deploys leave the node out', async () => {
    const home = await createConfigHome('cluster: { store: "file:///srv/store" }\n');
    const { cluster } = await home.load();
    expect({ nodeId: cluster?.nodeId, roles: cluster?.roles, store: cluster?.store }).toEqual({
      nodeId: undefined,
      roles: [],
      store: 'file:///srv/store',
    });
  });

  it('names the missing file and how to write one', async () => {
    const home = await createConfigHome();
    await expect(home.load()).rejects.toMatchObject({
      exitCode: 78,
      message: `cannot read ${home.paths.configFile}: there is no such file: write one with \`reeve init\``,
    });
  });

  it.each([
    ['a directory', 'mkdir', 'it is not a regular file'],
    ['bytes that are no UTF-8', 'bytes', 'it is not UTF-8 text'],
    ['more than 1 MiB', 'large', 'it is larger than 1 MiB'],
  ])('refuses %s', async (_title, kind, cause) => {
    const home = await createConfigHome();
    if (kind === 'mkdir') await home.write('reeve.yaml/inner', '');
    if (kind === 'bytes') await home.write('reeve.yaml', Buffer.from([0xff, 0xfe]));
    if (kind === 'large') await home.write('reeve.yaml', '#'.repeat(1024 * 1024 + 1));
    await expect(home.load()).rejects.toMatchObject({
      exitCode: 78,
      message: `cannot read ${home.paths.configFile}: ${cause}`,
    });
  });

  it('throws all problems of all sections at once, one line each', async () => {
    const home = await createConfigHome('cluster: { nodeId: "a b" }\nactions: { root: relative }\n');
    await expect(home.load()).rejects.toMatchObject({
      exitCode: 78,
      message: [
        `${home.paths.configFile}:1:20: cluster.nodeId must be an id of up to 64 letters, digits, "_" and "-", not beginning with "-", not "a b"`,
        `${home.paths.configFile}:2:18: actions.root must be an absolute path, not "relative"`,
      ].join('\n'),
    });
  });

  it('takes an empty file for a machine with nothing to do, and says so', async () => {
    const home = await createConfigHome('# nothing yet\n');
    expect(await home.load()).toEqual({
      file: home.paths.configFile,
      hooks: {},
      warnings: [`${home.paths.configFile} has no section: there is nothing to do on this machine`],
    });
  });
});
