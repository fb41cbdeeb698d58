// A certificate that is about to run out, and the token for the next one: what is still good stays in use until all of the next
// is there.
import { X509Certificate } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type JobsMachine, makeJobsMachine, writeSecret } from '../../support/jobs-machine.ts';
import { addNode } from '../../support/ploy/nodes.ts';

/** Of a year, with so many days left, and a fresh bootstrap token in place. */
async function aNodeWith(daysLeft: number, lifeDays = 365): Promise<JobsMachine> {
  const machine = await makeJobsMachine({ bootstrap: true });
  const { pki, ploy, files } = machine;
  const { cert, key } = pki.issueDated('node-1', daysLeft - lifeDays, daysLeft);
  mkdirSync(dirname(files.cert));
  copyFileSync(cert, files.cert);
  copyFileSync(key, files.key);
  copyFileSync(pki.ca.cert, files.ca);
  writeSecret(files.token, ploy.token);
  ploy.state.tokens.add(ploy.token);
  addNode(ploy.state, 'node-1');
  writeSecret(machine.files.bootstrapToken, machine.ploy.issueBootstrapToken());
  return machine;
}

/** As an operator does before a new one is issued: the server knows the node no more, and takes its old word still. */
const forgetNode = ({ ploy }: JobsMachine): void => void ploy.state.nodes.delete('node-1');

const daysLeft = ({ files }: JobsMachine): number =>
  (Date.parse(new X509Certificate(readFileSync(files.cert)).validTo) - Date.now()) / 86_400_000;

describe('P79: a certificate that is still good', () => {
  it.each([
    ['with 29 days of a year', 29, 365],
    ['with two days of nine', 2, 9],
  ])('%s left is renewed before it runs out, key and token with it', async (_, left, life) => {
    const machine = await aNodeWith(left, life);
    const before = [machine.files.cert, machine.files.key, machine.files.token].map((path) =>
      readFileSync(path, 'utf8'),
    );
    forgetNode(machine);
    const end = await machine.reeve('heartbeat');
    expect(end.stderr).toContain('the certificate has been renewed');
    expect([end.status, existsSync(machine.files.bootstrapToken)]).toEqual([0, false]);
    const { cert, key, token } = machine.files;
    const after = [cert, key, token].map((path) => readFileSync(path, 'utf8'));
    for (const [index, text] of after.entries()) expect(text).not.toBe(before[index]);
    expect(daysLeft(machine)).toBeGreaterThan(300);
    const [beat] = machine.ploy.requestsTo('heartbeat');
    expect([beat?.status, beat?.headers['authorization']]).toEqual([204, `Bearer ${after[2]?.trim()}`]);
  });

  it.each([
    ['with 31 days of a year', 31, 365],
    ['with four days of nine', 4, 9],
  ])('%s left is not, and the token stays for later', async (_, left, life) => {
    const machine = await aNodeWith(left, life);
    expect((await machine.reeve('heartbeat')).status).toBe(0);
    expect([machine.ploy.requestsTo('bootstrap').length, existsSync(machine.files.bootstrapToken)]).toEqual([
      0,
      true,
    ]);
  });

  it.each([
    ['refuses', { kind: 'answer', status: 409, text: 'node already exists' } as const],
    ['is in trouble', { kind: 'answer', status: 503 } as const],
  ])('stays in use where the server %s, with one warning', { timeout: 90_000 }, async (_, fault) => {
    const machine = await aNodeWith(10);
    machine.ploy.faults.add({ route: 'bootstrap', ...fault });
    const end = await machine.reeve('heartbeat');
    expect([end.status, end.stderr.match(/the certificate is not renewed/g)?.length]).toEqual([0, 1]);
    expect(machine.ploy.requestsTo('heartbeat').map(({ status }) => status)).toEqual([204]);
    expect(daysLeft(machine)).toBeLessThan(11);
    expect(existsSync(machine.files.bootstrapToken)).toBe(true);
  });

  it('is replaced as a whole by the next run where the renewal was killed with the answer on disk', async () => {
    const machine = await aNodeWith(10);
    forgetNode(machine);
    const { cert, key, ca, token, bootstrapToken } = machine.files;
    const old = [cert, key].map((path) => readFileSync(path, 'utf8'));
    expect((await machine.reeve('heartbeat')).status).toBe(0);
    const [certificate, newKey, caBundle, bearerToken] = [cert, key, ca, token].map((path) =>
      readFileSync(path, 'utf8'),
    );
    // As a kill leaves it between the key and the certificate: the two are no pair.
    writeSecret(cert, old[0] ?? '');
    writeSecret(bootstrapToken, 'used');
    const pending = { version: 1, key: newKey, certificate, caBundle, bearerToken: bearerToken?.trim() };
    machine.write('state/bootstrap.json', pending);
    machine.write('state/backoff/jobs.json', '');
    expect((await machine.reeve('heartbeat')).status).toBe(0);
    expect(readFileSync(cert, 'utf8')).toBe(certificate);
    expect([existsSync(bootstrapToken), existsSync(join(machine.stateDir, 'bootstrap.json'))]).toEqual([
      false,
      false,
    ]);
    expect(machine.ploy.requestsTo('bootstrap')).toHaveLength(1);
  });
});
