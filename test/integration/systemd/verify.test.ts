import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { type ProgramEnd, startProcess } from '../../support/programs.ts';
import { makeTempDir } from '../../support/temp.ts';

const shipped = resolve(import.meta.dirname, '../../../systemd');
const directory = 'usr/lib/systemd/system';
const shippedUnits = readdirSync(shipped).filter((name) => !/\.(conf|cfg)$/.test(name));

/** Enough of a machine for systemd-analyze to look at: the units, and the programs that they start. */
function createMachine(): string {
  const root = makeTempDir();
  for (const path of [directory, 'bin', 'usr/local/bin', 'etc/systemd/system']) {
    mkdirSync(join(root, path), { recursive: true });
  }
  for (const name of readdirSync(shipped)) copyFileSync(join(shipped, name), join(root, directory, name));
  for (const program of ['bin/sh', 'usr/local/bin/reeve']) {
    writeFileSync(join(root, program), '#!/bin/sh\n', { mode: 0o755 });
  }
  return root;
}

function edit(root: string, unit: string, from: string, to: string): void {
  const path = join(root, directory, unit);
  const text = readFileSync(path, 'utf8');
  expect(text).toContain(from);
  writeFileSync(path, text.replace(from, to));
}

function verify(root: string): Promise<ProgramEnd> {
  return startProcess(inject('reeveBin'), ['units', 'verify', '--root', root], {
    REEVE_CACHE: join(root, 'cache'),
  }).ended;
}

describe('units verify', () => {
  it('finds nothing to say about the units as they are shipped, and their exposure at most 2.0', async () => {
    const end = await verify(createMachine());
    expect(end).toMatchObject({
      status: 0,
      stderr: '',
      // HAProxy is not there.
      stdout: `${shippedUnits.length - 2} units are right\n`,
    });
  });

  it('looks at the balancer where HAProxy is installed, and at our drop-in of Caddy where Caddy is', async () => {
    const root = createMachine();
    for (const program of ['usr/sbin/haproxy', 'usr/bin/caddy', 'usr/bin/env', 'bin/kill', 'bin/rm']) {
      mkdirSync(join(root, program, '..'), { recursive: true });
      writeFileSync(join(root, program), '#!/bin/sh\n', { mode: 0o755 });
    }
    writeFileSync(join(root, directory, 'caddy.service'), '[Service]\nTheirs=1\nExecStart=/usr/bin/caddy\n');
    const dropIn = join(root, 'etc/systemd/system/caddy.service.d/50-reeve.conf');
    mkdirSync(join(dropIn, '..'));
    writeFileSync(dropIn, '[Service]\nRestart=always\n');
    const fine = await verify(root);
    expect(fine).toMatchObject({
      status: 0,
      stderr: '',
      stdout: `${shippedUnits.length + 1} units are right\n`,
    });
    edit(root, 'reeve-balancer.service', 'RestrictNamespaces=yes', 'RestrictNamespace=yes');
    writeFileSync(dropIn, '[Service]\nRestarts=always\n');
    const end = await verify(root);
    expect(end.status).toBe(1);
    expect(end.stdout).toContain("Unknown key 'RestrictNamespace' in section [Service], ignoring.");
    expect(end.stdout).toContain("50-reeve.conf:2: Unknown key 'Restarts' in section [Service], ignoring.");
    expect(end.stdout).not.toContain('Theirs');
  });

  it('takes a misspelt setting, which systemd only warns of, for a problem', async () => {
    const root = createMachine();
    edit(root, 'reeve-prune.timer', 'OnCalendar=', 'OnCalender=');
    const end = await verify(root);
    expect(end.status).toBe(1);
    expect(end.stdout).toContain("Unknown key 'OnCalender' in section [Timer], ignoring.");
  });

  it('takes a sandbox with a hole for a problem, also one that a drop-in makes', async () => {
    const root = createMachine();
    const dropIns = join(root, 'etc/systemd/system/reeve-heartbeat.service.d');
    mkdirSync(dropIns);
    writeFileSync(join(dropIns, 'override.conf'), '[Service]\nNoNewPrivileges=no\nRestrictNamespaces=no\n');
    const end = await verify(root);
    expect(end.status).toBe(1);
    expect(end.stdout).toMatch(
      /^\/usr\/lib\/systemd\/system\/reeve-heartbeat\.service: its exposure is 2\.\d, more than 2\n$/,
    );
  });

  it('says that there are no units, and where they come from', async () => {
    const root = makeTempDir();
    const end = await verify(root);
    expect(end).toMatchObject({
      status: 78,
      stderr: `reeve: cannot verify units: there is none of reeve in ${root}/usr/lib/systemd/system; scripts/install puts them there\n`,
    });
  });
});

describe('the calendar of the timers', () => {
  it('has a next run each day, clocks changing or not (O41)', async () => {
    const text = readFileSync(join(shipped, 'reeve-prune.timer'), 'utf8');
    const calendar = /^OnCalendar=(.+)$/m.exec(text)?.[1] ?? '';
    const args = ['calendar', '--iterations=400', '--base-time=2026-01-01 00:00:00 UTC', calendar];
    const { stdout } = await startProcess('systemd-analyze', args, { TZ: 'Europe/Dublin' }).ended;
    const runs = [...stdout.matchAll(/(?:\(in UTC\): |^ +Next elapse: .* )(\S+ \S+ \S+) UTC$/gm)].map(
      ([, at]) => at,
    );
    const gaps = runs.slice(1).map((at, index) => Date.parse(`${at}Z`) - Date.parse(`${runs[index]}Z`));
    expect(runs.length).toBeGreaterThan(300);
    expect(new Set(gaps)).toEqual(new Set([86_400_000]));
  });
});
