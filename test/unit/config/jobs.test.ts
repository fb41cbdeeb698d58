import { copyFile, readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { createConfigHome } from '../../support/config-home.ts';

const seedExample = new URL('../../fixtures/config/ployd-node.yaml', import.meta.url);
const minimal = 'server_url: https://ployd.example.com\nnode_id: n-1\n';

async function createHome(yaml: string) {
  const home = await createConfigHome('jobs: { file: ployd-node.yaml }\n');
  await home.write('ployd-node.yaml', yaml);
  return home;
}

describe('section jobs', () => {
  it('accepts the documented example of ployd-node verbatim (P1, P4-P8, P12-P16, P19-P21)', async () => {
    const home = await createConfigHome('jobs: { file: ployd-node.yaml }\n');
    await copyFile(seedExample, `${home.root}/ployd-node.yaml`);
    expect(await home.load()).toEqual({
      file: home.paths.configFile,
      hooks: {},
      warnings: [],
      jobs: {
        serverUrl: 'https://ployd.example.com:8443',
        nodeId: 'node-001',
        concurrency: 4,
        http: {
          listen: ':8444',
          readTimeoutMs: 30_000,
          writeTimeoutMs: 30_000,
          idleTimeoutMs: 120_000,
          tls: {
            enabled: true,
            certPath: '/etc/ploy/pki/node.crt',
            keyPath: '/etc/ploy/pki/node.key',
            caPath: '/etc/ploy/pki/ca.crt',
            bootstrapCaPath: '/etc/ploy/pki/ca.crt',
          },
        },
        heartbeat: { intervalMs: 30_000, timeoutMs: 10_000 },
      },
    });
  });

  it('accepts the same keys inline (P4)', async () => {
    const text = await readFile(seedExample, 'utf8');
    const inline = await createConfigHome(`jobs:\n${text.replaceAll(/^/gm, '  ')}`);
    const filed = await createHome(text);
    expect((await inline.load()).jobs).toEqual((await filed.load()).jobs);
  });

  it('fills in the defaults of ployd-node, and warns that anybody may start jobs (P9-P11, P17, P18, P22)', async () => {
    const home = await createHome(minimal);
    const config = await home.load();
    expect(config.jobs).toEqual({
      serverUrl: 'https://ployd.example.com',
      nodeId: 'n-1',
      concurrency: 1,
      http: {
        listen: ':8444',
        readTimeoutMs: 30_000,
        writeTimeoutMs: 30_000,
        idleTimeoutMs: 120_000,
        tls: { enabled: false },
      },
      heartbeat: { intervalMs: 30_000, timeoutMs: 10_000 },
    });
    expect(config.warnings).toEqual([
      'jobs.http.tls is off while jobs.http.listen is :8444: whoever reaches it can start containers',
    ]);
  });

  it('reads durations as Go does, zero meaning the default (P9-P11, P19, P20)', async () => {
    const home = await createHome(
      `${minimal}http: { listen: "127.0.0.1:1", read_timeout: 1m30s, write_timeout: 250ms, idle_timeout: 0s }\nheartbeat: { interval: 1.5h, timeout: 0s }\n`,
    );
    const { jobs } = await home.load();
    expect(jobs?.http).toMatchObject({ readTimeoutMs: 90_000, writeTimeoutMs: 250, idleTimeoutMs: 120_000 });
    expect(jobs?.heartbeat).toEqual({ intervalMs: 5_400_000, timeoutMs: 10_000 });
  });

  it.each([
    ['-3', 1, []],
    ['0', 1, []],
    ['64', 64, []],
    ['65', 64, ['jobs.concurrency 65 is capped at 64']],
  ])('takes concurrency %s as %i (P7, P23)', async (written, concurrency, warnings) => {
    const home = await createHome(`${minimal}concurrency: ${written}\nhttp: { listen: "127.0.0.1:1" }\n`);
    const config = await home.load();
    expect([config.jobs?.concurrency, config.warnings]).toEqual([concurrency, warnings]);
  });

  it('decides a scalar by its destination, as Go does: a node id of digits, a boolean word, null', async () => {
    const home = await createHome(
      'server_url: https://x.example\nnode_id: 007\nconcurrency: ~\nhttp: { listen: null, tls: { enabled: off } }\n',
    );
    const { jobs } = await home.load();
    expect([jobs?.nodeId, jobs?.concurrency, jobs?.http.listen, jobs?.http.tls]).toEqual([
      '007',
      1,
      ':8444',
      { enabled: false },
    ]);
  });

  it('lists what is missing before any default is applied (P21)', async () => {
    const home = await createHome('node_id: ""\nhttp:\n  tls:\n    enabled: true\n    cert_path: /c\n');
    expect(await home.problems()).toEqual([
      'ployd-node.yaml:1:1: jobs.server_url is missing: write it, or name the file that has it with "file"',
      'ployd-node.yaml:1:1: jobs.http.tls.key_path is missing, and TLS is enabled',
      'ployd-node.yaml:1:1: jobs.http.tls.ca_path is missing, and TLS is enabled',
      'ployd-node.yaml:1:10: jobs.node_id is missing',
    ]);
  });

  it.each([
    [
      'an unknown key',
      'heartbeet: {}',
      '3:1: unknown key "heartbeet" at the top level: did you mean "heartbeat"?',
    ],
    ['text for a number', 'concurrency: many', '3:14: concurrency must be a whole number, not "many"'],
    [
      'text for a boolean',
      'http: { tls: { enabled: maybe } }',
      '3:25: http.tls.enabled must be true or false, not "maybe"',
    ],
    [
      'an invalid duration',
      'heartbeat: { interval: soon }',
      '3:24: heartbeat.interval must be a duration such as 60s, 1m30s or 250ms, not "soon"',
    ],
    ...['8444', 'node.example:8444', ':0', ':65536', '300.0.0.1:80', '[node]:80'].map((listen) => [
      `${listen}, at which no socket of systemd can be (P8)`,
      `http: { listen: "${listen}" }`,
      `3:17: jobs.http.listen must be IP:PORT, localhost:PORT or :PORT, as systemd listens there and looks up no names, not "${listen}"`,
    ]),
  ])('refuses %s (P21)', async (_title, line, problem) => {
    const home = await createHome(`${minimal}${line}\n`);
    expect(await home.problems()).toEqual([`ployd-node.yaml:${problem}`]);
  });

  it.each([
    [
      'server_url: ployd.example.com\nnode_id: n',
      '1:13: jobs.server_url must be a URL that begins with http:// or https://',
    ],
    ...['https://u:p@x', 'https://u@x', 'https://x/?a=b', 'https://x/#a'].map((url) => [
      `server_url: "${url}"\nnode_id: n`,
      '1:13: jobs.server_url must have no user, no password, no query and no fragment',
    ]),
    [
      'server_url: https://x\nnode_id: a.b',
      '2:10: jobs.node_id must be 1 to 64 letters, digits, "_" and "-", not "a.b"',
    ],
  ])('refuses values no request could carry: %j (P5, P6)', async (yaml, problem) => {
    const home = await createHome(`${yaml}\nhttp: { listen: "127.0.0.1:1" }\n`);
    expect(await home.problems()).toEqual([`ployd-node.yaml:${problem}`]);
  });

  it.each([
    [
      'http://ployd.example.com',
      ['jobs.server_url is http://: the token and what jobs get and tell go over the network in clear text'],
    ],
    ['http://127.0.0.1:8080', []],
    ['http://localhost:8080', []],
    ['http://[::1]:8080', []],
    ['https://ployd.example.com', []],
  ])('warns of tokens in clear text: %s (P5)', async (url, warnings) => {
    const home = await createHome(`server_url: "${url}"\nnode_id: n\nhttp: { listen: "127.0.0.1:1" }\n`);
    expect((await home.load()).warnings).toEqual(warnings);
  });

  it('lets a key beside the file win over the file', async () => {
    const home = await createConfigHome(
      'jobs: { file: ployd-node.yaml, concurrency: 2, http: { listen: "127.0.0.1:9" } }\n',
    );
    await copyFile(seedExample, `${home.root}/ployd-node.yaml`);
    const { jobs } = await home.load();
    expect([jobs?.concurrency, jobs?.http.listen, jobs?.http.tls.enabled]).toEqual([2, '127.0.0.1:9', true]);
  });

  it('names the file that is missing where it is named', async () => {
    const home = await createConfigHome('jobs: { file: /nowhere/ployd-node.yaml }\n');
    expect(await home.problems()).toEqual([
      'reeve.yaml:1:15: cannot read /nowhere/ployd-node.yaml: there is no such file',
    ]);
  });
});
