// `reeve doctor` on a machine that takes commands: a real process, a strict control plane, and a real HAProxy.
import { chmodSync, copyFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type CommandsMachine, makeCommandsMachine } from '../../support/agenda/machine.ts';
import { createPki, writeRsaKey } from '../../support/ploy/pki.ts';
import { startProxy } from '../../support/proxy.ts';
import { makeTempDir } from '../../support/temp.ts';

type Finding = { check: string; level: string; what: string; where?: string; fix?: string };

async function examine(
  machine: CommandsMachine,
  name: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Finding[]> {
  const end = await machine.start(['doctor', '--json'], env).ended;
  const { findings } = JSON.parse(end.stdout) as { findings: Finding[] };
  return findings.filter(({ check }) => check === name);
}

const told = (findings: readonly Finding[]): string[] =>
  findings.map(({ level, what }) => `${level}: ${what}`);

describe('doctor, where commands are taken', () => {
  it('has nothing to complain of where all is well, and sends no heartbeat (A28)', async () => {
    const machine = await makeCommandsMachine();
    await machine.reeve('heartbeat');
    expect(told(await examine(machine, 'commands'))).toEqual([
      `ok: ${machine.central.url} answers, 0 commands running`,
    ]);
    expect(machine.central.requests.map(({ method, status }) => `${method} ${status}`)).toEqual([
      'POST 200',
      'GET 404',
    ]);
  });

  it('expects heartbeats, which keep the proxy, where no control plane is named as well', async () => {
    const commands = { central_base_url: '', heartbeat_interval: '30s' };
    const machine = await makeCommandsMachine({ commands });
    expect(told(await examine(machine, 'runs'))).toEqual([
      'warning: heartbeat has had no good run yet, and one is due every 30s',
    ]);
    await machine.reeve('heartbeat');
    expect(told(await examine(machine, 'runs'))).toEqual(['ok: 1 concern in order']);
  });

  it('tells of a token that others can read, in our file and in the seed’s (A20)', async () => {
    const machine = await makeCommandsMachine();
    const ours = join(machine.root, 'etc/reeve.yaml');
    const [what, fix] = ['the token can be read by others, and is good for any command', 'chmod 600'];
    chmodSync(ours, 0o640);
    expect(await examine(machine, 'commands')).toMatchObject([
      { level: 'failure', what, fix: `${fix} ${ours}` },
    ]);
    chmodSync(ours, 0o644);
    expect(told(await examine(machine, 'config')), 'in one line').toEqual(['ok: valid']);
    const seed = machine.write('etc/agenda-node.yaml', 'machine_id: 7\ntoken: tok-3f9c\n');
    chmodSync(seed, 0o644);
    machine.write('etc/reeve.yaml', { commands: { file: 'agenda-node.yaml' } });
    expect(await examine(machine, 'commands')).toMatchObject([
      { level: 'failure', what, fix: `${fix} ${seed}` },
    ]);
    machine.write('etc/reeve.yaml', { commands: { file: 'agenda-node.yaml', token: 'mine' } });
    chmodSync(ours, 0o600);
    expect(told(await examine(machine, 'commands')), 'the token in force is the other one').toEqual([
      'ok: no control plane is told of this machine, 0 commands running',
    ]);
  });

  it('tells of a control plane that is gone, and of one that does not know our token', async () => {
    const machine = await makeCommandsMachine();
    machine.central.faults.push({ kind: 'answer', status: 401, text: '{"error":"invalid node token"}' });
    expect(told(await examine(machine, 'commands'))).toEqual([
      'failure: the control plane does not know our token (401)',
    ]);
    await machine.central.stop();
    expect(told(await examine(machine, 'commands'))).toEqual([
      `failure: cannot reach ${machine.central.url}: connection refused`,
    ]);
  });

  it('tells of heartbeats that were refused, though their command does not fail (A31, A33)', async () => {
    const machine = await makeCommandsMachine({ central: { machines: { 7: 'another' } } });
    expect((await machine.reeve('heartbeat')).status).toBe(0);
    expect(told(await examine(machine, 'commands'))).toEqual([
      'failure: cannot send the heartbeat of commands: the control plane answered 401: invalid node token',
    ]);
  });

  it('tells of a user that there is not, and of what is kept where others can read it', async () => {
    const machine = await makeCommandsMachine({ commands: { user: 'nobody-of-that-name' } });
    const path = machine.write('state/commands/job-1.json', 'no record');
    chmodSync(path, 0o644);
    expect(told(await examine(machine, 'commands'))).toEqual([
      'failure: 1 file of commands can be read by others, with what may be secret',
      'failure: cannot run anything as "nobody-of-that-name": the machine has no such user',
      'warning: the records of 1 command cannot be read',
    ]);
    expect(machine.read('state/commands/job-1.json'), 'and changes nothing').toBe('no record');
  });

  it('looks at the API’s certificate and its key', async () => {
    const pki = createPki(makeTempDir());
    const expired = pki.expired();
    const key = join(makeTempDir(), 'api.key');
    copyFileSync(expired.key, key);
    chmodSync(key, 0o644);
    const machine = await makeCommandsMachine({
      commands: { tls: { cert_path: expired.cert, key_path: key, ca_path: pki.ca.cert } },
    });
    const certificates = told(await examine(machine, 'certificates'));
    expect(certificates).toEqual([
      expect.stringMatching(/^failure: it has expired on /),
      expect.stringMatching(/^ok: valid until /),
    ]);
    expect(await examine(machine, 'secrets')).toMatchObject([
      { level: 'failure', what: '1 readable by others', fix: `chmod go-rwx ${key}` },
    ]);
  });

  it.each([
    ['missing', 'it cannot be read: ENOENT: no such file or directory'],
    ['none at all', 'it is damaged, or none'],
    ['that of another certificate', 'it is not the one of the certificate'],
    ['of another kind than the certificate', 'it is not the one of the certificate'],
  ])('tells of a key of the API’s certificate that is %s', async (which, problem) => {
    const pki = createPki(makeTempDir());
    const key = join(makeTempDir(), 'api.key');
    if (which === 'none at all') writeFileSync(key, 'junk', { mode: 0o600 });
    if (which === 'that of another certificate') copyFileSync(pki.node.key, key);
    if (which === 'of another kind than the certificate') writeRsaKey(key);
    const machine = await makeCommandsMachine({
      commands: { tls: { cert_path: pki.server.cert, key_path: key } },
    });
    expect((await examine(machine, 'certificates')).slice(1)).toEqual([
      {
        ...{ check: 'certificates', level: 'failure', where: key },
        what: `the key of a certificate: ${problem}`,
        fix: `put the key of ${pki.server.cert} there, or correct its path in commands.tls`,
      },
    ]);
  });

  it('names the setting of a certificate of theirs that is missing or damaged, and not its key', async () => {
    const pki = createPki(makeTempDir());
    const damaged = join(makeTempDir(), 'ca.pem');
    writeFileSync(damaged, '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
    const machine = await makeCommandsMachine({
      commands: { tls: { cert_path: '/nowhere/api.crt', key_path: pki.server.key, ca_path: damaged } },
    });
    const fix = 'put a certificate there, or correct its path in commands.tls';
    expect(await examine(machine, 'certificates')).toMatchObject([
      { where: '/nowhere/api.crt', what: expect.stringContaining('ENOENT'), fix },
      { where: damaged, what: 'it cannot be used: it is damaged, or none', fix },
    ]);
  });

  it('says nothing of commands where there are none', async () => {
    const machine = await makeCommandsMachine();
    machine.write('etc/reeve.yaml', { cluster: { nodeId: 'web-1' } });
    expect(await examine(machine, 'commands')).toEqual([]);
    expect(await examine(machine, 'proxy')).toEqual([]);
  });
});

/** A socket whose server has been killed: its file is still there, and nobody listens. */
async function leaveSocket(path: string): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(`${path}.bound`, resolve));
  renameSync(`${path}.bound`, path);
  await new Promise((resolve) => server.close(resolve));
}

describe('doctor, about the proxy', () => {
  it('tells whether it runs, and of its tunnels', async () => {
    const machine = await makeCommandsMachine();
    const where = join(machine.root, 'run-proxy/master.sock');
    expect(await examine(machine, 'proxy')).toMatchObject([
      { level: 'failure', what: 'it is not there', where },
    ]);
    const proxy = await startProxy();
    const env = { REEVE_RUN: proxy.paths.runDir };
    expect(told(await examine(machine, 'proxy', env))).toEqual(['ok: HAProxy answers, 0 tunnels']);
  });

  it('tells of one that hangs, and of a socket that nobody listens on any more, not of its own end', async () => {
    const machine = await makeCommandsMachine();
    const proxy = await startProxy();
    const env = { REEVE_RUN: proxy.paths.runDir };
    const [worker = 0] = proxy.workers();
    process.kill(worker, 'SIGSTOP');
    try {
      expect(told(await examine(machine, 'proxy', env))).toEqual([
        `failure: cannot ask HAProxy on ${JSON.stringify(proxy.at.masterSocket)}: no answer within 4s`,
      ]);
    } finally {
      process.kill(worker, 'SIGCONT');
    }
    await proxy.kill();
    await leaveSocket(proxy.at.masterSocket);
    expect(told(await examine(machine, 'proxy', env))).toEqual(['failure: nothing listens there']);
  });

  it('tells of a backend host that is not known (A13, A18)', async () => {
    const machine = await makeCommandsMachine({ commands: { proxy_backend_host: 'no-such-host.invalid' } });
    const proxy = await startProxy();
    const findings = await examine(machine, 'proxy', { REEVE_RUN: proxy.paths.runDir });
    expect(told(findings)).toEqual([
      expect.stringMatching(/^failure: cannot look up commands.proxy_backend_host "no-such-host.invalid": /),
    ]);
  });
});
