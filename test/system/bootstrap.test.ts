// A fresh machine that cloud-init makes a node: user data with an address that S3 could have presigned, and nothing else.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { type Host, startHost } from '../support/host.ts';
import { describeInstalled, type Installed } from '../support/installed.ts';
import { describeHost, nextRuns } from '../support/system.ts';

const script = resolve(import.meta.dirname, '../../scripts/bootstrap');
const storeDir = '/var/lib/reeve/store';
const userData = '/var/lib/cloud/instance/user-data.txt';

/** The package, from a server on the machine itself: it has no other network. */
async function serve(host: Host): Promise<void> {
  await host.copy(inject('packageFile'), '/srv');
  await host.output(['busybox', 'httpd', '-p', '127.0.0.1:8000', '-h', '/srv']);
}

describeHost('a fresh machine with user data', () => {
  let host: Host;
  let node: Installed;
  let sum: string;
  const file = (): string => basename(inject('packageFile'));
  /** As it is printed where the packages are made. */
  const printUserData = (words: readonly string[]): string => {
    const address = `http://127.0.0.1:8000/${file()}?X-Amz-Expires=900&X-Amz-Signature=a%2Bb`;
    return execFileSync(script, ['--user-data', '--url', address, ...words], { encoding: 'utf8' });
  };
  const boot = async (words: readonly string[]) => {
    await host.write(userData, printUserData(words), '0700');
    return await host.run([userData]);
  };
  beforeAll(async () => {
    host = startHost('web-1');
    node = describeInstalled(host);
    await serve(host);
    sum = createHash('sha256')
      .update(readFileSync(inject('packageFile')))
      .digest('hex');
  });
  afterAll(() => host?.stop());

  it('stays as it is where the package is not the one that was meant', async () => {
    const end = await boot(['--sha256', sum.replace(/^./, (digit) => (digit === '0' ? '1' : '0'))]);
    expect([end.status, end.stderr]).toEqual([65, expect.stringContaining('nothing is changed')]);
    expect(await host.sh('ls -d /opt/* /etc/reeve /usr/local/bin/* 2>/dev/null || true')).toBe('');
  });

  it('becomes a node that runs by itself (L7, L170)', async () => {
    const end = await boot([
      '--sha256',
      sum,
      '--node',
      'web-1',
      '--role',
      'app',
      '--store',
      `file://${storeDir}`,
    ]);
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
    const end = await host.run([userData]);
    expect([end.status, end.stdout.trim().split('\n')]).toEqual([
      0,
      [
        'this package is installed already',
        'kept /etc/reeve/reeve.yaml, which was there',
        'this machine is a node',
      ],
    ]);
    expect(await look()).toBe(before);
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
    const sum = createHash('sha256')
      .update(readFileSync(inject('packageFile')))
      .digest('hex');
    await host.copy(script, '/root');
    const address = `http://127.0.0.1:8000/${basename(inject('packageFile'))}`;
    const end = await host.run(['/root/bootstrap', '--url', address, '--sha256', sum]);
    expect(end).toMatchObject({ status: 0, stderr: '' });
    const shown = await host.output(['reeve', 'config', 'show']);
    expect(shown).toMatch(/nodeId: app-1/);
    expect(shown).toMatch(/secrets: ssm/);
    expect(await host.output(['systemctl', 'is-active', 'reeve-app.target'])).toBe('active\n');
  });
});
