// `reeve doctor` on a machine that takes jobs: a real process against a strict server.
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { engineSocket } from '../../support/engine.ts';
import { type JobsMachine, makeJobsMachine, writeSecret } from '../../support/jobs-machine.ts';

type Finding = { check: string; level: string; what: string; where?: string; fix?: string };

async function examine(machine: JobsMachine, ...names: string[]): Promise<string[]> {
  const findings = await find(machine, ...names);
  return findings.map(({ level, what }) => `${level}: ${what}`);
}

async function find(machine: JobsMachine, ...names: string[]): Promise<Finding[]> {
  const end = await machine.reeve('doctor', '--json');
  const { findings } = JSON.parse(end.stdout) as { findings: Finding[] };
  return findings.filter(({ check }) => names.includes(check));
}

describe('doctor, where jobs are taken', () => {
  it('has nothing to complain of where all is well', async () => {
    const machine = await makeJobsMachine();
    expect(await examine(machine, 'jobs')).toEqual([`ok: ${machine.ploy.url} answers, 0 jobs open`]);
  });

  it('tells of a key of another certificate, and of a token that others can read', async () => {
    const machine = await makeJobsMachine();
    copyFileSync(machine.pki.foreign.node.key, machine.files.key);
    chmodSync(machine.files.token, 0o640);
    const findings = await examine(machine, 'jobs');
    expect(findings[0]).toBe('failure: the token can be read by others');
    expect(findings[1]).toMatch(/its key is not the one of the certificate$/);
  });

  it.each([
    ['key', 'its key is damaged, or none'],
    ['cert', 'it is damaged, or none'],
    ['ca', 'its authority is damaged, or none'],
  ] as const)('names a %s that is none in words', async (file, words) => {
    const machine = await makeJobsMachine();
    writeSecret(machine.files[file], 'junk');
    const what = `cannot use the certificate in ${JSON.stringify(machine.files.cert)}: ${words}`;
    expect(await examine(machine, 'jobs')).toEqual([`failure: ${what}`]);
  });

  it('tells of a token that is not there, and of a server that is not', async () => {
    const machine = await makeJobsMachine();
    rmSync(machine.files.token);
    await machine.ploy.goAway();
    const findings = await examine(machine, 'jobs');
    expect(findings).toEqual([
      'failure: there is no token for the server',
      `failure: cannot reach ${machine.ploy.url}: connection refused`,
    ]);
  });

  it('says how a node without a certificate gets one, with a token for it and without', async () => {
    const machine = await makeJobsMachine({ bootstrap: true });
    const { bootstrapToken } = machine.files;
    const missing = {
      ...{ check: 'jobs', level: 'failure', where: bootstrapToken },
      what: 'there is no certificate with its key, and no bootstrap token for one',
      fix: `issue a bootstrap token (POST /v1/bootstrap/tokens) and write it to ${bootstrapToken}`,
    };
    // The authority of the exchange is there, and what the exchange brings is not missed.
    expect(await find(machine, 'jobs', 'certificates')).toEqual([
      expect.objectContaining({ check: 'certificates', level: 'ok', where: machine.pki.ca.cert }),
      missing,
    ]);
    writeSecret(bootstrapToken, machine.ploy.issueBootstrapToken());
    expect(await find(machine, 'jobs')).toEqual([
      {
        ...{ check: 'jobs', level: 'warning', where: bootstrapToken },
        what: 'there is no certificate yet, but a bootstrap token',
        fix: '`reeve claim` exchanges it for one',
      },
    ]);
    const claim = await machine.reeve('heartbeat');
    expect(claim.status, claim.stderr).toBe(0);
    expect(await examine(machine, 'jobs')).toEqual([`ok: ${machine.ploy.url} answers, 0 jobs open`]);
  });

  it('says what helps where the token is missing or refused, as no exchange does while there is a certificate', async () => {
    const machine = await makeJobsMachine();
    const { cert, key, bootstrapToken, token } = machine.files;
    const fix = `remove the node on the server and ${cert} and ${key} here, then issue a bootstrap token (POST /v1/bootstrap/tokens) and write it to ${bootstrapToken}`;
    machine.ploy.state.tokens.clear();
    const where = machine.ploy.url;
    const refused = { what: 'the server does not know our token (401)', where, fix };
    expect(await find(machine, 'jobs')).toEqual([{ check: 'jobs', level: 'failure', ...refused }]);
    rmSync(token);
    const missing = { what: 'there is no token for the server', where: token, fix };
    expect(await find(machine, 'jobs')).toEqual([{ check: 'jobs', level: 'failure', ...missing }]);
  });

  it('looks at the engine that its jobs run in, also where the node has no services', async () => {
    const socket = engineSocket();
    const alone = await makeJobsMachine({ cluster: { docker: { socket } } });
    const found = await find(alone, 'engine');
    expect(found).toMatchObject([{ level: 'ok', where: socket }]);
    // A section cluster for the engine alone makes it no node with a store, and no machine that only deploys.
    expect(await examine(alone, 'store')).toEqual([
      'skipped: this machine takes jobs alone: cluster.nodeId is not set',
    ]);
    expect((await alone.reeve('status')).stdout).toMatch(/^jobs of node-1: 0 of 1 open/);
    const gone = await makeJobsMachine({ cluster: { docker: { socket: '/nowhere/docker.sock' } } });
    expect(await find(gone, 'engine')).toMatchObject([{ level: 'failure', where: '/nowhere/docker.sock' }]);
  });

  it('tells of a certificate that has run out', async () => {
    const machine = await makeJobsMachine();
    copyFileSync(machine.pki.expired().cert, machine.files.cert);
    expect((await examine(machine, 'certificates'))[0]).toMatch(/^failure: it has expired on /);
  });

  it('tells of jobs open for more than a day, and of completions that are not delivered', async () => {
    const machine = await makeJobsMachine();
    const claim = {
      version: 1,
      source: 'claim',
      runId: 'r',
      jobId: 'job-1',
      claimedAt: '2026-01-01T00:00:00.000Z',
    };
    machine.write('state/jobs/job-1/claim.json', claim);
    const completion = {
      version: 1,
      body: { status: 'Fail' },
      decidedAt: claim.claimedAt,
      attempts: 4,
      lastError: 'gone',
    };
    machine.write('state/jobs/job-1/completion.json', completion);
    expect(await examine(machine, 'jobs')).toEqual([
      'warning: 1 job open for more than a day',
      'warning: 1 completion not delivered yet: gone',
    ]);
  });

  it('R32: names a job whose records a newer version has written, and goes on with the others', async () => {
    const machine = await makeJobsMachine();
    const claim = { version: 1, source: 'claim', runId: 'r', claimedAt: '2026-01-01T00:00:00.000Z' };
    machine.write('state/jobs/job-1/claim.json', { ...claim, jobId: 'job-1' });
    machine.write('state/jobs/job-2/claim.json', { version: 99 });
    machine.write('state/jobs/job-3/claim.json', { ...claim, jobId: 'job-3' });
    machine.write('state/jobs/job-3/progress.json', { version: 99 });
    const path = (name: string): string => JSON.stringify(join(machine.stateDir, 'jobs', name));
    const unreadable = (name: string): string =>
      `warning: the records of a job cannot be read: cannot read ${path(name)}: it is version 99, this reeve knows versions up to 1`;
    expect(await examine(machine, 'jobs')).toEqual([
      unreadable('job-2/claim.json'),
      unreadable('job-3/progress.json'),
      'warning: 1 job open for more than a day',
    ]);
    expect(machine.read('state/jobs/job-2/claim.json')).toBe('{"version":99}');
  });

  it.each([
    [-30_000, /^ok: /],
    [30_000, /^ok: /],
    [120_000, /^warning: this clock is (1m 5\ds|2m|2m \ds) behind the server's$/],
    [-120_000, /^warning: this clock is (1m 5\ds|2m|2m \ds) ahead of the server's$/],
    [3_600_000, /^failure: this clock is (59m 5\ds|1h) behind the server's$/],
    [-3_600_000, /^failure: this clock is (59m 5\ds|1h) ahead of the server's$/],
  ])("R23: compares its clock with the server's, which is %i ms ahead", async (clockAheadMs, wanted) => {
    const machine = await makeJobsMachine({ clockAheadMs });
    expect(await examine(machine, 'jobs')).toEqual([expect.stringMatching(wanted)]);
  });

  it('leaves out what a machine without a section cluster has switched off, and asks for its claims and beats', async () => {
    const machine = await makeJobsMachine();
    const failedAt = new Date().toISOString();
    for (const concern of ['reconcile', 'edge', 'listen', 'claim']) {
      machine.write(`state/runs/${concern}.json`, {
        ...{ version: 1, concern, runId: 'r', pid: 1, startedAt: failedAt, endedAt: failedAt },
        ...{ outcome: 'failed', exitCode: 1, durationMs: 1, lastEndedAt: failedAt, lastGoodAt: failedAt },
      });
    }
    for (const unit of ['reeve-prune.service', 'reeve-reconcile.service', 'reeve-job@a.service']) {
      machine.write(`state/failures/${unit}.json`, {
        ...{ version: 1, unit, firstAt: failedAt, lastAt: failedAt, count: 1, result: 'exit-code' },
        ...{ status: '1', invocationId: null, lastLines: [], notified: true, hook: null },
      });
    }
    expect(await examine(machine, 'runs', 'failures')).toEqual([
      'warning: heartbeat has had no good run yet, and one is due every 30s',
      'failure: the last run of claim ended with 1',
      `failure: failed once, last at ${failedAt} (exit-code, status 1)`,
    ]);
  });

  it.each(['git', 'tar', 'gzip', 'openssl'])(
    'P59: says that jobs need %s where it is missing',
    async (missing) => {
      const machine = await makeJobsMachine();
      const bin = join(machine.root, 'bin');
      mkdirSync(bin);
      for (const name of ['git', 'tar', 'gzip', 'openssl'].filter((one) => one !== missing)) {
        symlinkSync(execFileSync('which', [name], { encoding: 'utf8' }).trim(), join(bin, name));
      }
      const end = await machine.start(['doctor', '--json'], { PATH: bin }).ended;
      const { findings } = JSON.parse(end.stdout) as { findings: Finding[] };
      const [finding] = findings.filter(({ check }) => check === 'jobs');
      expect(finding).toMatchObject({
        ...{ level: 'failure', what: `jobs need ${missing}`, fix: `apt-get install ${missing}` },
      });
      expect(end.status).toBe(1);
    },
  );
});
