// A machine that has a token to exchange for its certificate, and what has to be true of it afterwards.
import { X509Certificate } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, inject } from 'vitest';
import { engineSocket } from './engine.ts';
import { type JobsMachine, makeJobsMachine, writeSecret } from './jobs-machine.ts';
import { startProcess } from './programs.ts';

export async function aFreshMachine(): Promise<JobsMachine> {
  const cluster = { docker: { socket: engineSocket() } };
  const machine = await makeJobsMachine({ bootstrap: true, cluster });
  writeSecret(machine.files.bootstrapToken, machine.ploy.issueBootstrapToken());
  return machine;
}

/** For the built program. */
export const environment = (machine: JobsMachine): Record<string, string> => ({
  ...machine.env,
  HOME: machine.root,
  REEVE_CONFIG: join(machine.root, 'etc/reeve.yaml'),
  REEVE_STATE: machine.stateDir,
  REEVE_RUN: join(machine.root, 'run'),
  REEVE_CACHE: join(machine.root, 'cache'),
});

export const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);
const pendingOf = ({ stateDir }: JobsMachine): string => join(stateDir, 'bootstrap.json');

/** Whatever is there is whole, and only for us. */
export function requireWholeFiles(machine: JobsMachine, run: string): void {
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
export function isLost(machine: JobsMachine): boolean {
  const { cert, key, token } = machine.files;
  const isExchanged = machine.ploy.requestsTo('bootstrap').some(({ status }) => status === 200);
  return (
    isExchanged && !existsSync(pendingOf(machine)) && ![cert, key, token].every((path) => existsSync(path))
  );
}

export async function requireNextRunWhole(machine: JobsMachine, run: string): Promise<void> {
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
