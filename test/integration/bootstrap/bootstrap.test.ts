// A node without a certificate, as a whole process against a server that gives one for a token.
import { X509Certificate } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ensureIdentity, type IdentityContext } from '../../../src/lib/bootstrap/identity.ts';
import { loadConfig } from '../../../src/lib/config/load.ts';
import { resolvePaths } from '../../../src/lib/config/paths.ts';
import { silentLog } from '../../../src/lib/report/log.ts';
import { systemClock } from '../../../src/lib/time.ts';
import { type JobsMachine, makeJobsMachine, writeSecret } from '../../support/jobs-machine.ts';
import { openssl } from '../../support/ploy/pki.ts';
import { sentenceOfProgram } from '../../support/sentence.ts';

const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);

async function aFreshMachine(): Promise<JobsMachine> {
  const machine = await makeJobsMachine({ bootstrap: true });
  writeSecret(machine.files.bootstrapToken, machine.ploy.issueBootstrapToken());
  return machine;
}

function aContext({ root, env, files }: JobsMachine): IdentityContext {
  const dirs = {
    REEVE_STATE: join(root, 'state'),
    REEVE_RUN: join(root, 'run'),
    REEVE_CACHE: join(root, 'cache'),
  };
  const paths = resolvePaths({ config: join(root, 'etc/reeve.yaml') }, { ...env, ...dirs });
  const overrides = {
    PLOY_NODE_BEARER_TOKEN_PATH: files.token,
    PLOY_BOOTSTRAP_TOKEN_PATH: files.bootstrapToken,
  };
  const { signal } = new AbortController();
  return { runId: 'run-1', command: 'test', paths, overrides, clock: systemClock, log: silentLog, signal };
}

describe('a node without a certificate', () => {
  it('P79, P16: exchanges its token for one, with the modes of the original, and drops the token', async () => {
    const machine = await aFreshMachine();
    const end = await machine.reeve('heartbeat');
    expect([end.status, end.stderr.includes('error')]).toEqual([0, false]);
    const { cert, key, ca, token, bootstrapToken } = machine.files;
    expect([cert, key, ca, token].map(mode)).toEqual(['600', '600', '600', '600']);
    expect(mode(dirname(cert))).toBe('750');
    expect(existsSync(bootstrapToken)).toBe(false);
    expect(existsSync(join(machine.stateDir, 'bootstrap.json'))).toBe(false);
    expect(new X509Certificate(readFileSync(cert)).subject).toContain('node:node-1');
    expect(machine.ploy.requestsTo('heartbeat').map(({ status }) => status)).toEqual([204]);
  });

  it('P79: asks with the token, the node and a request of the right names over P-256', async () => {
    const machine = await aFreshMachine();
    const token = readFileSync(machine.files.bootstrapToken, 'utf8');
    await machine.reeve('heartbeat');
    const [request] = machine.ploy.requestsTo('bootstrap');
    expect(request?.headers['authorization']).toBe(`Bearer ${token}`);
    expect(request?.headers['ploy_node_uuid']).toBe('node-1');
    const shown = openssl(
      ['req', '-noout', '-text'],
      String((request?.body as { csr?: string } | undefined)?.csr),
    );
    expect(shown).toMatch(/O ?= ?Ploy, CN ?= ?node:node-1/);
    expect(shown).toContain('DNS:node-node-1.ploy');
    expect(shown).toContain('prime256v1');
  });

  it('P79: exchanges the token once, whoever comes at the same moment', async () => {
    const machine = await aFreshMachine();
    const ctx = aContext(machine);
    const { jobs } = await loadConfig(ctx.paths, {});
    if (jobs === undefined) throw new Error('there is no section jobs');
    const made = await Promise.all([1, 2, 3].map(() => ensureIdentity(ctx, jobs)));
    expect(made.sort()).toEqual(['issued', 'present', 'present']);
    expect(machine.ploy.requestsTo('bootstrap')).toHaveLength(1);
  });

  it('P17: trusts the authority of the cluster where none is named for the bootstrap, and it is there', async () => {
    const machine = await makeJobsMachine({ bootstrap: true, tls: { bootstrap_ca_path: '' } });
    writeSecret(machine.files.bootstrapToken, machine.ploy.issueBootstrapToken());
    mkdirSync(dirname(machine.files.ca), { recursive: true });
    copyFileSync(machine.pki.ca.cert, machine.files.ca);
    expect((await machine.reeve('heartbeat')).status).toBe(0);
  });

  it("P18: trusts the system's authorities where neither is there", async () => {
    const machine = await makeJobsMachine({ bootstrap: true, tls: { bootstrap_ca_path: '' } });
    writeSecret(machine.files.bootstrapToken, machine.ploy.issueBootstrapToken());
    const end = await machine.start(['heartbeat'], { NODE_EXTRA_CA_CERTS: machine.pki.ca.cert }).ended;
    expect([end.status, machine.ploy.requestsTo('bootstrap').length]).toEqual([0, 1]);
  });

  it('R35: a server that has the node already is told of in one sentence, with what to do there', async () => {
    const machine = await aFreshMachine();
    machine.ploy.faults.add({ kind: 'answer', status: 409, text: 'node already exists', route: 'bootstrap' });
    const end = await machine.reeve('heartbeat');
    expect(end.status).toBe(69);
    expect(sentenceOfProgram(end)).toMatch(
      /the server has a node of this id already \(409, node already exists\): remove it there or .*issue a new token/,
    );
    expect(existsSync(machine.files.bootstrapToken)).toBe(true);
  });

  it('P16: says which file the exchange lacks where the authority named for it is not there (exit 78)', async () => {
    const machine = await makeJobsMachine({ bootstrap: true, tls: { bootstrap_ca_path: '/nowhere/ca.crt' } });
    writeSecret(machine.files.bootstrapToken, machine.ploy.issueBootstrapToken());
    const end = await machine.reeve('heartbeat');
    expect(end.status).toBe(78);
    expect(sentenceOfProgram(end)).toContain(
      'cannot read "/nowhere/ca.crt": there is no such file: put the authority of the server\'s certificate there, or correct jobs.http.tls.bootstrap_ca_path',
    );
    expect(existsSync(machine.files.bootstrapToken), 'the token is not used up').toBe(true);
  });

  it('says what to do where there is no token', async () => {
    const machine = await makeJobsMachine({ bootstrap: true });
    const end = await machine.reeve('heartbeat');
    expect(end.status).toBe(78);
    expect(sentenceOfProgram(end)).toMatch(/there is no bootstrap token in .*: issue one/);
  });

  it('R35: a refused token is tried five times, told in one sentence, and then left alone', async () => {
    const machine = await makeJobsMachine({ bootstrap: true });
    writeSecret(machine.files.bootstrapToken, 'no-such-token');
    const first = await machine.reeve('claim', '--window', '0');
    expect(first.status).toBe(69);
    expect(sentenceOfProgram(first)).toMatch(/the bootstrap token is refused \(401.*\): issue a new token/);
    expect(machine.ploy.requestsTo('bootstrap')).toHaveLength(5);
    expect(first.stderr).not.toContain('no-such-token');
    const second = await machine.reeve('heartbeat');
    expect(second.status).toBe(69);
    expect(machine.ploy.requestsTo('bootstrap')).toHaveLength(5);
  });

  it('is asked for once by a heartbeat, so that no other report of its beat is late (P79)', async () => {
    const machine = await aFreshMachine();
    machine.ploy.faults.add({ kind: 'answer', status: 503, route: 'bootstrap' });
    expect((await machine.reeve('heartbeat')).status).toBe(69);
    expect(machine.ploy.requestsTo('bootstrap')).toHaveLength(1);
  });

  it('P79: a certificate that cannot be used is told as that, and its token is not tried again', async () => {
    const machine = await aFreshMachine();
    machine.ploy.faults.add({ kind: 'answer', status: 200, text: '{"certificate":"x"}', route: 'bootstrap' });
    const end = await machine.reeve('claim', '--window', '0');
    expect(end.status).toBe(69);
    expect(sentenceOfProgram(end)).toMatch(
      /cannot use the certificate that the server has issued: it has no ca_bundle: .* another one is needed/,
    );
    expect(machine.ploy.requestsTo('bootstrap')).toHaveLength(1);
  });

  it.each(['', 'two words', 'caf\u00e9'])('refuses a bootstrap token that is none: %j', async (token) => {
    const machine = await makeJobsMachine({ bootstrap: true });
    writeSecret(machine.files.bootstrapToken, token);
    const end = await machine.reeve('heartbeat');
    expect([end.status, sentenceOfProgram(end)]).toEqual([78, expect.stringContaining('is no token')]);
    expect(machine.ploy.requestsTo('bootstrap')).toEqual([]);
  });

  it('finishes from the one file on disk what a crash has left half done', async () => {
    const machine = await aFreshMachine();
    await machine.reeve('heartbeat');
    const { cert, key, ca, token } = machine.files;
    const [certificate, keyText, caBundle, bearerToken] = [cert, key, ca, token].map((path) =>
      readFileSync(path, 'utf8'),
    );
    const pending = { version: 1, key: keyText, certificate, caBundle, bearerToken: bearerToken?.trim() };
    machine.write('state/bootstrap.json', pending);
    machine.write('state/backoff/jobs.json', '');
    for (const path of [cert, token]) writeFileSync(path, 'half');
    const end = await machine.reeve('heartbeat');
    expect([end.status, readFileSync(cert, 'utf8')]).toEqual([0, certificate]);
    expect(existsSync(join(machine.stateDir, 'bootstrap.json'))).toBe(false);
    expect(machine.ploy.requestsTo('bootstrap')).toHaveLength(1);
  });
});

describe('a certificate that runs out', () => {
  it('is renewed by the heartbeat once a new token is in place', async () => {
    const machine = await makeJobsMachine({ bootstrap: true });
    const old = machine.pki.expired();
    for (const [from, to] of [
      [old.cert, machine.files.cert],
      [old.key, machine.files.key],
      [machine.pki.ca.cert, machine.files.ca],
    ] as const) {
      mkdirSync(dirname(to), { recursive: true });
      copyFileSync(from, to);
    }
    writeSecret(machine.files.token, 'old-token');
    writeSecret(machine.files.bootstrapToken, machine.ploy.issueBootstrapToken());
    const end = await machine.reeve('heartbeat');
    expect(end.stderr).toContain('the certificate has been renewed');
    expect([end.status, existsSync(machine.files.bootstrapToken)]).toEqual([0, false]);
    expect(readFileSync(machine.files.cert, 'utf8')).not.toBe(readFileSync(old.cert, 'utf8'));
  });
});
