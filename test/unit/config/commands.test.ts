import { describe, expect, it } from 'vitest';
import { createConfigHome } from '../../support/config-home.ts';

const minimal = 'machine_id: 7\ntoken: tok-3f9c\ncentral_base_url: https://agenda.example\n';

const socketRule = 'must be IP:PORT, localhost:PORT or :PORT, as systemd listens there and looks up no names';

async function createHome(yaml: string, mode = 0o600) {
  const home = await createConfigHome('commands: { file: agenda-node.yaml }\n');
  await home.write('agenda-node.yaml', yaml, mode);
  return home;
}

describe('section commands', () => {
  it('reads agenda-node.yaml with its own defaults (A9, A10, A12, A13, A16, A19-A25)', async () => {
    const home = await createHome(minimal);
    const config = await home.load();
    expect(config.commands).toEqual({
      listenAddr: '127.0.0.1:7100',
      proxyListenAddr: '0.0.0.0:7200',
      proxyBackendHost: '127.0.0.1',
      machineId: 7,
      token: 'tok-3f9c',
      centralBaseUrl: 'https://agenda.example',
      heartbeatIntervalMs: 15_000,
      maxOutputBytes: 65_536,
      jobRetentionMs: 3_600_000,
      proxyDrainTimeoutMs: 30_000,
      user: 'root',
      liveOutput: false,
    });
    expect(config.warnings).toEqual([]);
  });

  it('reads every key of agenda-node.yaml (A10-A15, A18-A26)', async () => {
    const home = await createHome(
      [
        'listen_addr: 10.0.0.5:7101',
        'proxy_listen_addr: 10.0.0.5:7201',
        'proxy_backend_host: host.docker.internal',
        'machine_id: 9007199254740991',
        'token: 0123',
        'central_base_url: http://agenda.example/base/',
        'heartbeat_interval: 1m30s',
        'max_output_bytes: 1024',
        'job_retention: 2h',
        'proxy_drain_timeout: 250ms',
      ].join('\n'),
    );
    expect((await home.load()).commands).toEqual({
      listenAddr: '10.0.0.5:7101',
      proxyListenAddr: '10.0.0.5:7201',
      proxyBackendHost: 'host.docker.internal',
      machineId: 9_007_199_254_740_991,
      token: '0123',
      centralBaseUrl: 'http://agenda.example/base',
      heartbeatIntervalMs: 90_000,
      maxOutputBytes: 1024,
      jobRetentionMs: 7_200_000,
      proxyDrainTimeoutMs: 250,
      user: 'root',
      liveOutput: false,
    });
  });

  it('takes an empty backend host for 127.0.0.1, and zero for the default, and says so (A17)', async () => {
    const zeros = [
      'max_output_bytes: 0',
      'job_retention: 0s',
      'proxy_drain_timeout: 0m',
      'heartbeat_interval: 0s',
    ];
    const home = await createHome(`${minimal}proxy_backend_host: ""\n${zeros.join('\n')}\n`);
    const { commands, warnings } = await home.load();
    expect(commands).toMatchObject({
      ...{ proxyBackendHost: '127.0.0.1', maxOutputBytes: 65_536, jobRetentionMs: 3_600_000 },
      ...{ proxyDrainTimeoutMs: 30_000, heartbeatIntervalMs: 15_000 },
    });
    expect(warnings.toSorted()).toEqual([
      'commands.heartbeat_interval 0s means the default, 15s',
      'commands.job_retention 0s means the default, 1h',
      'commands.max_output_bytes 0 means the default, 65536',
      'commands.proxy_drain_timeout 0m means the default, 30s',
    ]);
  });

  it('sends no heartbeats more often than each second, and says so (A22)', async () => {
    const home = await createHome(`${minimal}heartbeat_interval: 999ms\n`);
    const { commands, warnings } = await home.load();
    expect(commands?.heartbeatIntervalMs).toBe(1_000);
    expect(warnings).toEqual(['commands.heartbeat_interval 999ms is too little: it is 1s']);
  });

  it('keeps no more output than there is room for, and says so (A23)', async () => {
    const home = await createHome(`${minimal}max_output_bytes: 16777217\n`);
    const config = await home.load();
    expect(config.commands?.maxOutputBytes).toBe(16_777_216);
    expect(config.warnings).toEqual(['commands.max_output_bytes 16777217 is too much: 16777216 are kept']);
  });

  it('gives tunnels no longer than a timer and HAProxy can: beyond it they would have no time at all (A25)', async () => {
    const home = await createHome(`${minimal}proxy_drain_timeout: 720h\n`);
    const config = await home.load();
    expect(config.commands).toMatchObject({ proxyDrainTimeoutMs: 24 * 86_400_000 });
    expect(config.warnings).toEqual(['commands.proxy_drain_timeout 720h is too much: 24d are given']);
  });

  it('takes the user from reeve.yaml', async () => {
    const home = await createConfigHome('commands: { file: agenda-node.yaml, user: deploy }\n');
    await home.write('agenda-node.yaml', minimal);
    expect((await home.load()).commands?.user).toBe('deploy');
  });

  it('refuses a configuration without token and machine id (A27)', async () => {
    const home = await createHome('listen_addr: 127.0.0.1:7100\n');
    expect(await home.problems()).toEqual([
      'agenda-node.yaml:1:1: commands.machine_id is missing: it is the id of this machine in the control plane',
      'agenda-node.yaml:1:1: commands.token is missing: it is the agent token of this machine in the control plane',
    ]);
  });

  it.each([
    ['machine_id: 0', 'machine_id', '1:13: commands.machine_id must be more than 0, not 0'],
    ['machine_id: seven', 'machine_id', '1:13: machine_id must be a whole number, not "seven"'],
    [
      'machine_id: 9223372036854775807',
      'machine_id',
      '1:13: machine_id must be at most 9007199254740991, not the number 9223372036854776000',
    ],
    ['listen_addr: 7100', 'listen_addr', `4:14: commands.listen_addr ${socketRule}, not "7100"`],
    [
      'listen_addr: agenda.lan:7100',
      'listen_addr',
      `4:14: commands.listen_addr ${socketRule}, not "agenda.lan:7100"`,
    ],
    [
      'proxy_listen_addr: 10.0.0.5:0',
      'proxy_listen_addr',
      `4:20: commands.proxy_listen_addr ${socketRule}, not "10.0.0.5:0"`,
    ],
    ...['127.0.0.1:7100', 'localhost:7100', ':7100', '0.0.0.0:7100', '"[::]:7100"'].map((address) => [
      `proxy_listen_addr: ${address}`,
      'proxy_listen_addr',
      '4:20: commands.proxy_listen_addr must differ from commands.listen_addr',
    ]),
    [
      'central_base_url: https://agenda.example/?a=b',
      'central_base_url',
      '3:19: commands.central_base_url must have no query and no fragment',
    ],
    [
      'proxy_backend_host: "a b"',
      'proxy_backend_host',
      '4:21: commands.proxy_backend_host must be a host name or an IP address',
    ],
    [
      'user: root',
      'user',
      '4:1: unknown key "user" at the top level: known keys are listen_addr, proxy_listen_addr, proxy_backend_host, machine_id, token, central_base_url, heartbeat_interval, max_output_bytes, job_retention, proxy_drain_timeout',
    ],
  ])('refuses %s (A12, A19, A27)', async (line, key, problem) => {
    const own = new RegExp(`^${key}: .*$`, 'm');
    const yaml = own.test(minimal) ? minimal.replace(own, line) : `${minimal}${line}\n`;
    const home = await createHome(yaml);
    expect(await home.problems()).toEqual([`agenda-node.yaml:${problem}`]);
  });

  const isPublic = [
    ['0.0.0.0:7100', true],
    [':7100', true],
    ['[::]:7100', true],
    ['203.0.113.7:7100', true],
    ['localhost:7100', false],
    ['127.0.0.1:7100', false],
    ['192.168.1.2:7100', false],
    ['100.64.3.4:7100', false],
    ['[::1]:7100', false],
    ['[fd00::1]:7100', false],
  ] as const;

  it.each(isPublic)('refuses a management API on %s without TLS: %s (A11)', async (address, refuses) => {
    const home = await createHome(`${minimal}listen_addr: "${address}"\n`);
    const problem = `agenda-node.yaml:4:14: commands.listen_addr ${address} is not private, and there is no TLS: whoever hears the token runs commands here as root: bind a private address, or write commands.tls`;
    expect(await home.problems()).toEqual(refuses ? [problem] : []);
    expect(await home.warnings()).toEqual([]);
  });

  it.each(isPublic)('warns of a management API on %s with TLS: %s (A11)', async (address, warns) => {
    const tls = '{ cert_path: /c.crt, key_path: /c.key }';
    const home = await createConfigHome(
      `commands: { file: agenda-node.yaml, listen_addr: "${address}", tls: ${tls} }\n`,
    );
    await home.write('agenda-node.yaml', minimal);
    const warning = `commands.listen_addr ${address} is not private: whoever has the token runs commands here as root`;
    expect([await home.problems(), await home.warnings()]).toEqual([[], warns ? [warning] : []]);
    expect((await home.load()).commands?.tls).toEqual({ certPath: '/c.crt', keyPath: '/c.key' });
  });

  it('wants certificate and key of a TLS, and takes an authority of callers', async () => {
    const home = await createConfigHome('commands: { file: agenda-node.yaml, tls: { ca_path: /ca.crt } }\n');
    await home.write('agenda-node.yaml', minimal);
    expect((await home.problems()).map((problem) => problem.replace(/^[^ ]* /, ''))).toEqual([
      'commands.tls.cert_path is missing',
      'commands.tls.key_path is missing',
    ]);
    const tls = '{ cert_path: /c.crt, key_path: /c.key, ca_path: /ca.crt }';
    await home.write('reeve.yaml', `commands: { file: agenda-node.yaml, tls: ${tls} }\n`);
    const { commands } = await home.load();
    expect(commands?.tls).toEqual({ certPath: '/c.crt', keyPath: '/c.key', caPath: '/ca.crt' });
  });

  it.each(['cert_path: /c.crt', 'key_path: /c.key', 'ca_path: /ca.crt'])(
    'refuses a public management API with a TLS that has %s alone as one without TLS (A11)',
    async (half) => {
      const home = await createConfigHome(
        `commands: { file: agenda-node.yaml, listen_addr: "0.0.0.0:7100", tls: { ${half} } }\n`,
      );
      await home.write('agenda-node.yaml', minimal);
      expect(await home.problems()).toContainEqual(
        expect.stringContaining('commands.listen_addr 0.0.0.0:7100 is not private, and there is no TLS'),
      );
    },
  );

  it('takes an IPv6 address for a backend host with brackets and without (A13)', async () => {
    for (const host of ['::1', '[::1]']) {
      const home = await createHome(`${minimal}proxy_backend_host: "${host}"\n`);
      expect((await home.load()).commands?.proxyBackendHost).toBe('::1');
    }
  });

  it.each([
    ['http://agenda.example', true],
    ['http://127.0.0.1:8080', false],
    ['http://localhost:8080', false],
    ['http://[::1]:8080', false],
    ['https://agenda.example', false],
  ])('warns of a token in clear text to %s: %s (A21)', async (url, warns) => {
    const home = await createHome(minimal.replace('https://agenda.example', url));
    const warning =
      'commands.central_base_url is http://: the token, which is good for any command, goes over the network in clear text';
    expect(await home.warnings()).toEqual(warns ? [warning] : []);
  });

  it('warns that no heartbeats are sent without a control plane (A21)', async () => {
    const home = await createHome('machine_id: 7\ntoken: t\n');
    expect(await home.warnings()).toEqual([
      'commands.central_base_url is empty: no heartbeats are sent to that control plane',
    ]);
  });

  it('warns of a token that others can read (A20)', async () => {
    const home = await createHome(minimal, 0o644);
    expect(await home.warnings()).toEqual([
      'agenda-node.yaml holds a token and others can read it: chmod 600 agenda-node.yaml',
    ]);
  });

  it('finds its file by AGENDA_NODE_CONFIG, unless reeve.yaml has the section (A9)', async () => {
    const home = await createConfigHome();
    const path = await home.write('elsewhere.yaml', minimal);
    expect((await home.load({ AGENDA_NODE_CONFIG: path })).commands?.machineId).toBe(7);
    await home.write('reeve.yaml', 'commands: { machine_id: 8, token: t }\n');
    expect((await home.load({ AGENDA_NODE_CONFIG: path })).commands?.machineId).toBe(8);
  });
});
