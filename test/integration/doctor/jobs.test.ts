// `reeve doctor` on a machine that takes jobs: a real process against a strict server.
import { chmodSync, copyFileSync, rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type JobsMachine, makeJobsMachine } from '../../support/jobs-machine.ts';

type Finding = { check: string; level: string; what: string; fix?: string };

async function examine(machine: JobsMachine, ...names: string[]): Promise<string[]> {
  const end = await machine.reeve('doctor', '--json');
  const { findings } = JSON.parse(end.stdout) as { findings: Finding[] };
  return findings.filter(({ check }) => names.includes(check)).map(({ level, what }) => `${level}: ${what}`);
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
    expect(findings[1]).toMatch(/the key is not the one of the certificate$/);
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
});
