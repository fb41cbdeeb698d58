// A fresh machine that cloud-init makes a node: user data with an address that S3 could have presigned, and nothing else.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { type Host, startHost } from '../support/host.ts';
import { describeInstalled, type Installed } from '../support/installed.ts';
import type { ProgramEnd } from '../support/programs.ts';
import { describeHost, nextRuns } from '../support/system.ts';

const script = resolve(import.meta.dirname, '../../scripts/bootstrap');
const storeDir = '/var/lib/reeve/store';
const userData = '/var/lib/cloud/instance/user-data.txt';
const systemPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

const file = basename(inject('packageFile'));
const store = `file://${storeDir}`;

/** The package, from a server on the machine itself: it has no other network. */
async function serve(host: Host): Promise<void> {
  await host.copy(inject('packageFile'), '/srv');
  await host.output(['busybox', 'httpd', '-p', '127.0.0.1:8000', '-h', '/srv']);
}

function readSum(): string {
  return createHash('sha256')
    .update(readFileSync(inject('packageFile')))
    .digest('hex');
}

/** As it is printed where the packages are made. */
function printUserData(words: readonly string[]): string {
  const address = `http://127.0.0.1:8000/${file}?X-Amz-Expires=900&X-Amz-Signature=a%2Bb`;
  return execFileSync(script, ['--user-data', '--url', address, ...words], { encoding: 'utf8' });
}

/** As cloud-init runs it: by its own first line, with nobody's home. */
async function runUserData(host: Host, shell: readonly string[] = []): Promise<ProgramEnd> {
  return await host.run(['env', '-i', `PATH=${systemPath}`, ...shell, userData]);
}

describeHost('a fresh machine with user data', () => {
  let host: Host;
  let node: Installed;
  let sum: string;
  const boot = async (words: readonly string[]) => {
    await host.write(userData, printUserData(words), '0700');
    return await runUserData(host);
  };
  beforeAll(async () => {
    host = startHost('web-1');
    node = describeInstalled(host);
    await serve(host);
    sum = readSum();
  });
  afterAll(() => host?.stop());

  it('stays as it is where the package is not the one that was meant', async () => {
    const end = await boot(['--sha256', sum.replace(/^./, (digit) => (digit === '0' ? '1' : '0'))]);
    expect([end.status, end.stderr]).toEqual([65, expect.stringContaining('nothing is changed')]);
    expect(await host.sh('ls -d /opt/* /etc/reeve /usr/local/bin/* 2>/dev/null || true')).toBe('');
  });

  it('becomes a node that runs by itself (L7, L170)', async () => {
    const end = await boot(['--sha256', sum, '--node', 'web-1', '--role', 'app', '--store', store]);
    expect(end).toMatchObject({ status: 0, stderr: '' });
    expect(await host.output(['systemctl', 'is-active', 'reeve.target', 'reeve-app.target'])).toBe(
      'active\nactive\n',
    );
    expect(Object.keys(await nextRuns(host))).toContain('reeve-reconcile.timer');
    expect(JSON.parse(await host.read(`${storeDir}/nodes/web-1/node.json`))).toMatchObject({
      nodeId: 'web-1',
    });
    // Nothing of the way there is left, and nobody else can read how it was addressed.
    expect(await host.sh('ls -d /var/tmp/reeve* 2>/dev/null || true')).toBe('');
    expect(
      await host.sh('grep -rlF Signature=a%2Bb /etc /opt /var/lib/reeve /var/log/reeve /run/reeve || true'),
    ).toBe('');
  });

  it('does what the agent at launch-pad’s path did, when that is started (L6, L7)', async () => {
    // One that is under way would be all that starting the unit waits for.
    const before = await host.waitFor('a moment between two ticks', async () => {
      const { ActiveState } = await host.show('reeve-reconcile.service', 'ActiveState');
      const run = await node.runOf('reconcile');
      return ActiveState === 'inactive' && run.endedAt !== null && run;
    });
    await host.output(['/opt/launch-pad/agent']);
    const after = await node.runOf('reconcile');
    expect(after.runId).not.toBe(before.runId);
    expect(after.endedAt).not.toBeNull();
  });

  it('is what it was when the same is done again, with the address long gone', async () => {
    await host.sh('kill $(pidof busybox)');
    const look = (): Promise<string> =>
      host.sh(
        'find /opt/reeve /opt/launch-pad /etc/reeve /etc/systemd/system -printf "%p %i %m %T@\\n" | sort',
      );
    const before = await look();
    for (const shell of [[], ['dash'], ['bash', '--posix'], ['busybox', 'sh']]) {
      const end = await runUserData(host, shell);
      expect([end.status, end.stderr, end.stdout.trim().split('\n')]).toEqual([
        0,
        '',
        [
          'this package is installed already',
          'kept /etc/reeve/reeve.yaml, which was there',
          'the units are as the configuration wants them',
          expect.stringMatching(/^\d+ units are right$/),
          'this machine is a node',
        ],
      ]);
    }
    expect(await look()).toBe(before);
  });
});

describeHost('a machine on which one thing after another goes wrong', () => {
  const machineUnits = '/etc/systemd/system';
  let host: Host;
  beforeAll(async () => {
    host = startHost('web-1');
    await serve(host);
    const words = ['--sha256', readSum(), '--node', 'web-1', '--store', store];
    await host.write(userData, printUserData(words), '0700');
  });
  afterAll(() => host?.stop());

  it('is no node where power fails in the middle of the install', async () => {
    // A disk that takes its time.
    await host.write('/usr/local/sbin/sync', '#!/bin/sh\nexec sleep 1000\n', '0755');
    host.start([userData]);
    await host.waitFor('the install', () => host.sh('ls -d /opt/reeve/releases/.staging-*; pgrep -x sleep'));
    await host.losePower();
    await host.sh('rm /usr/local/sbin/sync');
    expect(await host.exists('/etc/reeve/reeve.yaml')).toBe(false);
    expect(await host.sh('ls -d /var/tmp/reeve-bootstrap*')).not.toBe('');
  });

  it('installs, the next time, and says that its store cannot be had', async () => {
    await serve(host);
    await host.write(storeDir, 'in the way');
    const end = await runUserData(host);
    expect([end.status, end.stderr.trim().split('\n').at(-1)]).toEqual([
      78,
      'bootstrap: reeve is installed, and this machine is no whole node yet, as told above: set that right, and do this again',
    ]);
    const agent = await host.run(['/opt/launch-pad/agent']);
    expect([agent.status, agent.stderr]).toEqual([
      78,
      'agent: there is nothing to run: this machine is no node: `reeve init` makes it one\n',
    ]);
    await host.sh(`rm ${storeDir}; kill $(pidof busybox)`);
    expect(await host.sh('ls -d /var/tmp/reeve-bootstrap* 2>/dev/null || true')).toBe('');
  });

  it('enters no node that its bucket cannot be asked for, and says when to do it again (R61)', async () => {
    const other = '/root/user-data';
    const place = ['--store', 's3://state', '--endpoint', 'http://127.0.0.1:1'];
    await host.write(other, printUserData(['--sha256', readSum(), '--node', 'web-1', ...place]), '0700');
    // Six tries, ten seconds apart.
    await host.write('/usr/local/sbin/sleep', '#!/bin/sh\necho slept\n', '0755');
    const credentials = ['AWS_ACCESS_KEY_ID=test', 'AWS_SECRET_ACCESS_KEY=test'];
    const end = await host.run(['env', '-i', `PATH=${systemPath}`, ...credentials, other]);
    await host.sh('rm /usr/local/sbin/sleep');
    expect([end.status, end.stdout.match(/slept/g)?.length, end.stderr.trim().split('\n').at(-1)]).toEqual([
      69,
      5,
      'bootstrap: reeve is installed, and the node is not entered: do this again once its store can be reached, as told above',
    ]);
    expect(end.stderr).toContain('ECONNREFUSED 127.0.0.1:1');
    expect(await host.exists('/etc/reeve/reeve.yaml')).toBe(false);
  });

  it('goes on with what is there, and says that its units cannot be placed', async () => {
    await host.write(`${machineUnits}/reeve.target.wants`, 'in the way');
    for (const [status, message] of [
      [1, /^bootstrap: reeve is installed, and this machine is no whole node yet, /],
      [1, /^bootstrap: the units are not as \/etc\/reeve\/reeve.yaml wants them, as told above: /],
    ] as const) {
      const end = await runUserData(host);
      expect([end.status, end.stdout, end.stderr.trim().split('\n').at(-1)]).toEqual([
        status,
        expect.stringContaining('this package is installed already'),
        expect.stringMatching(message),
      ]);
    }
    await host.sh(`rm ${machineUnits}/reeve.target.wants`);
  });

  it('places them, and says that they cannot be started', async () => {
    await host.sh('systemctl stop reeve.target; systemctl mask reeve.target');
    const end = await runUserData(host);
    expect([end.status, end.stdout, end.stderr.trim().split('\n').at(-1)]).toEqual([
      1,
      expect.stringContaining('switched on reeve-app.target'),
      'bootstrap: cannot start reeve.target, as told above: set that right, and do this again',
    ]);
    await host.sh('systemctl unmask reeve.target');
  });

  it('is a node once all of that is set right (L7, L170)', async () => {
    expect(await runUserData(host)).toMatchObject({ status: 0, stderr: '' });
    expect(await host.output(['systemctl', 'is-active', 'reeve.target', 'reeve-app.target'])).toBe(
      'active\nactive\n',
    );
    expect(await host.exists(`${storeDir}/nodes/web-1/node.json`)).toBe(true);
  });
});

describeHost('a machine of launch-pad’s', () => {
  let host: Host;
  beforeAll(() => {
    host = startHost('app-1');
  });
  afterAll(() => host?.stop());

  it('is the node that agent.json names, without another word (L166, L167)', async () => {
    const identity = {
      nodeId: 'app-1',
      agentId: 'agent-1',
      bucket: 'state',
      region: 'eu-west-1',
      role: 'app',
    };
    await host.write('/etc/launch-pad/agent.json', JSON.stringify({ ...identity, advertiseIp: '10.99.0.2' }));
    await serve(host);
    await host.copy(script, '/root');
    const address = `http://127.0.0.1:8000/${file}`;
    const end = await host.run(['/root/bootstrap', '--url', address, '--sha256', readSum()]);
    // The machine has neither credentials nor a network, and says so instead of being content.
    expect([end.status, end.stderr.trim().split('\n').at(-1)]).toEqual([
      69,
      expect.stringMatching(
        /^bootstrap: this machine is set up as a node, and is none before its store can be reached: cannot read /,
      ),
    ]);
    const shown = await host.output(['reeve', 'config', 'show']);
    expect(shown).toMatch(/nodeId: app-1/);
    expect(shown).toMatch(/secrets: ssm/);
    expect(await host.output(['systemctl', 'is-active', 'reeve-app.target'])).toBe('active\n');
  });
});
