// The exchange of a token for a certificate, killed at each step on disk and on the wire: what is there is whole and for nobody
// else's eyes, the token is exchanged once, and the next run has all of it.
import { X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { engineSocket } from '../../support/engine.ts';
import { type FaultRun, fileCalls, runUnderFault } from '../../support/faults.ts';
import { type JobsMachine, makeJobsMachine, writeSecret } from '../../support/jobs-machine.ts';
import { startProcess } from '../../support/programs.ts';
import { sentenceOfProgram } from '../../support/sentence.ts';

/** More calls of one kind than a heartbeat with a bootstrap makes. */
const maxRuns = 60;

async function aFreshMachine(): Promise<JobsMachine> {
  const cluster = { docker: { socket: engineSocket() } };
  const machine = await makeJobsMachine({ bootstrap: true, cluster });
  writeSecret(machine.files.bootstrapToken, machine.ploy.issueBootstrapToken());
  return machine;
}

const environment = (machine: JobsMachine): Record<string, string> => ({
  ...machine.env,
  HOME: machine.root,
  REEVE_CONFIG: join(machine.root, 'etc/reeve.yaml'),
  REEVE_STATE: machine.stateDir,
  REEVE_RUN: join(machine.root, 'run'),
  REEVE_CACHE: join(machine.root, 'cache'),
});

const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);
const pendingOf = ({ stateDir }: JobsMachine): string => join(stateDir, 'bootstrap.json');

/** Whatever is there is whole, and only for us. */
function requireWholeFiles(machine: JobsMachine, run: string): void {
  const { cert, key, ca, token } = machine.files;
  for (const path of [cert, key, ca, token, pendingOf(machine)].filter((one) => existsSync(one))) {
    expect([run, path, mode(path)]).toEqual([run, path, '600']);
    const text = readFileSync(path, 'utf8');
    if (path === pendingOf(machine)) expect(Object.keys(JSON.parse(text))).toContain('bearerToken');
    else if (path === token) expect(text).toMatch(/^[0-9a-f]{48}\n$/);
    else expect(text).toMatch(/^-----BEGIN [\s\S]+-----END [A-Z ]+-----\n$/);
  }
  for (const directory of [dirname(cert), dirname(token)].filter((one) => existsSync(one))) {
    for (const name of readdirSync(directory)) {
      const path = join(directory, name);
      // A key that was staged is as secret as one in place.
      if (statSync(path).isFile()) expect([run, path, mode(path)]).toEqual([run, path, '600']);
    }
  }
}

/** Whether the server has given what no disk has: then only its operator can help. */
function isLost(machine: JobsMachine): boolean {
  const { cert, key, token } = machine.files;
  const isExchanged = machine.ploy.requestsTo('bootstrap').some(({ status }) => status === 200);
  return (
    isExchanged && !existsSync(pendingOf(machine)) && ![cert, key, token].every((path) => existsSync(path))
  );
}

async function requireNextRunWhole(machine: JobsMachine, run: string): Promise<void> {
  const end = await startProcess(inject('reeveBin'), ['heartbeat'], environment(machine)).ended;
  expect([run, end.status, end.stderr.includes('error')]).toEqual([run, 0, false]);
  const { cert, key, ca, token, bootstrapToken } = machine.files;
  requireWholeFiles(machine, run);
  const certificate = new X509Certificate(readFileSync(cert));
  expect(certificate.subject).toContain('node:node-1');
  expect([run, [key, ca, token].every((path) => existsSync(path))]).toEqual([run, true]);
  expect([run, existsSync(bootstrapToken), existsSync(pendingOf(machine))]).toEqual([run, false, false]);
  // The server takes all of it together.
  const doctor = await startProcess(inject('reeveBin'), ['doctor', '--json'], environment(machine)).ended;
  const { findings } = JSON.parse(doctor.stdout) as {
    findings: { check: string; level: string; what: string }[];
  };
  expect([run, findings.find(({ check }) => check === 'jobs')]).toMatchObject([run, { level: 'ok' }]);
  // Nothing half done stays beside the files.
  const left = [dirname(cert), dirname(token), machine.stateDir].flatMap((directory) =>
    readdirSync(directory),
  );
  expect([run, left.filter((name) => name.startsWith('.') || name.includes('bootstrap'))]).toEqual([run, []]);
}

describe('P79: the exchange of a token, killed', () => {
  it.each([
    ['rename', 6],
    ['sync', 10],
    ['unlink', 2],
  ] as const)(
    'at any %s: the next run has all of it, and no token is exchanged twice',
    {
      timeout: 590_000,
    },
    async (call, least) => {
      let losses = 0;
      let hits = 0;
      for (let n = 1; n <= maxRuns; n += 1) {
        const machine = await aFreshMachine();
        const fault = { calls: fileCalls[call], effect: 'signal=KILL' };
        const run: FaultRun = await runUnderFault(
          [inject('reeveBin'), 'heartbeat'],
          environment(machine),
          fault,
          n,
        );
        const name = `${call} ${n}`;
        requireWholeFiles(machine, name);
        const lost = isLost(machine);
        if (lost) {
          losses += 1;
          machine.ploy.state.nodes.clear();
          writeSecret(machine.files.bootstrapToken, machine.ploy.issueBootstrapToken());
        }
        await requireNextRunWhole(machine, name);
        const exchanged = machine.ploy.requestsTo('bootstrap').map(({ status }) => status);
        expect([name, exchanged]).toEqual([name, lost ? [200, 200] : [200]]);
        await machine.ploy.stop();
        if (!run.hit) break;
        hits += 1;
      }
      console.log(
        `figure: killed at ${hits} calls of ${call}, ${losses} with an answer that was on no disk yet`,
      );
      expect(hits).toBeGreaterThanOrEqual(least);
      // Only while the answer itself is put on disk.
      expect(losses).toBeLessThanOrEqual(4);
    },
  );

  it('before the server has done it: the next run exchanges the same token', async () => {
    const machine = await aFreshMachine();
    const heal = machine.ploy.faults.add({ route: 'bootstrap', kind: 'silence' });
    const program = startProcess(inject('reeveBin'), ['heartbeat'], environment(machine));
    await expect.poll(() => machine.ploy.requestsTo('bootstrap').length, { timeout: 30_000 }).toBe(1);
    program.child.kill('SIGKILL');
    await program.ended;
    heal();
    expect(readdirSync(dirname(machine.files.token))).toEqual(['bootstrap-token']);
    await requireNextRunWhole(machine, 'silence');
    expect(machine.ploy.requestsTo('bootstrap').map(({ status }) => status)).toEqual([undefined, 200]);
  });

  it('R35: after the server has done it and before its answer is here: is told what to do, and mended by that', {
    timeout: 120_000,
  }, async () => {
    const machine = await aFreshMachine();
    const heal = machine.ploy.faults.add({ route: 'bootstrap', kind: 'silence', committed: true });
    const program = startProcess(inject('reeveBin'), ['heartbeat'], environment(machine));
    await expect.poll(() => machine.ploy.requestsTo('bootstrap').length, { timeout: 30_000 }).toBe(1);
    await expect.poll(() => machine.ploy.state.nodes.size, { timeout: 30_000 }).toBe(1);
    program.child.kill('SIGKILL');
    await program.ended;
    heal();
    const next = await startProcess(inject('reeveBin'), ['heartbeat'], environment(machine)).ended;
    expect(next.status).toBe(69);
    expect(sentenceOfProgram(next)).toMatch(/the bootstrap token is refused \(401.*\): issue a new token/);
    machine.ploy.state.nodes.clear();
    writeSecret(machine.files.bootstrapToken, machine.ploy.issueBootstrapToken());
    machine.write('state/backoff/jobs.json', '');
    await requireNextRunWhole(machine, 'lost answer');
  });

  it('P79: is tried again while the server has trouble, with the same token', async () => {
    const machine = await aFreshMachine();
    machine.ploy.faults.add({ route: 'bootstrap', kind: 'answer', status: 503, times: 1 });
    machine.ploy.faults.add({ route: 'bootstrap', kind: 'reset', times: 1 });
    const startedAtMs = performance.now();
    const end = await startProcess(inject('reeveBin'), ['claim', '--window', '0'], environment(machine))
      .ended;
    const ms = performance.now() - startedAtMs;
    expect([end.status, existsSync(machine.files.cert)]).toEqual([0, true]);
    const requests = machine.ploy.requestsTo('bootstrap');
    expect(requests.map(({ status }) => status)).toEqual([503, undefined, 200]);
    expect(new Set(requests.map(({ headers }) => headers['authorization'])).size).toBe(1);
    // One second and two, give or take half.
    expect(ms).toBeGreaterThan(1_500);
    expect(ms).toBeLessThan(10_000);
  });

  it('R59: told to stop while it waits for the next attempt ends at once, and the token is good still', async () => {
    const machine = await aFreshMachine();
    const heal = machine.ploy.faults.add({ route: 'bootstrap', kind: 'answer', status: 503 });
    const program = startProcess(inject('reeveBin'), ['claim', '--window', '60'], environment(machine));
    await machine.ploy.waitUntil('two attempts', () => machine.ploy.requestsTo('bootstrap').length >= 2);
    const toldAtMs = performance.now();
    program.child.kill('SIGTERM');
    expect((await program.ended).status).toBe(143);
    expect(performance.now() - toldAtMs).toBeLessThan(5_000);
    heal();
    await requireNextRunWhole(machine, 'stopped');
  });

  it('a directory of certificates that is there keeps its mode, and one that is made is 0750', async () => {
    const machine = await aFreshMachine();
    mkdirSync(dirname(machine.files.cert), { mode: 0o700 });
    await requireNextRunWhole(machine, 'there');
    expect(mode(dirname(machine.files.cert))).toBe('700');
  });
});
