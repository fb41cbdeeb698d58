// The machines themselves: what the other system tests take for granted.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Host, startHost } from '../support/host.ts';
import { describeHost } from '../support/system.ts';

describeHost('a machine of the system tests', () => {
  let host: Host;
  beforeAll(async () => {
    host = startHost('web-1');
    await host.copy(`${import.meta.dirname}/../../scripts/images`, '/root');
    await host.output(['/root/images', '/var/run/docker.sock']);
  });
  afterAll(() => host?.stop());

  it('boots with all units in order and an address of its own', async () => {
    expect(await host.output(['systemctl', '--failed', '--quiet', '--no-legend'])).toBe('');
    expect(await host.output(['hostname', '-I'])).toContain('10.99.0.2');
    expect(await host.output(['hostname'])).toBe('web-1\n');
  });

  it('serves a published port of a container with limits, after a reboot and a power failure, too', async () => {
    const limits = ['--memory', '64m', '--cpus', '0.5'];
    await host.output([
      'docker',
      'run',
      '-d',
      '--name',
      'web',
      ...limits,
      '-p',
      '20001:8080',
      '--restart',
      'always',
      'reeve-demo/web:v1',
    ]);
    const answer = () =>
      host.output(['curl', '-sS', '--fail', '--max-time', '2', 'http://10.99.0.2:20001/healthz']);
    expect(await host.waitFor('an answer', answer)).toBe('ok\n');
    await host.reboot();
    expect(await host.waitFor('an answer after the reboot', answer)).toBe('ok\n');
    await host.losePower();
    expect(await host.waitFor('an answer after the power failure', answer)).toBe('ok\n');
    expect((await host.output(['journalctl', '--list-boots', '--no-pager'])).trim().split('\n')).toHaveLength(
      4,
    );
  });

  it('runs beside another one that knows nothing of it', async () => {
    const other = startHost('web-2');
    try {
      expect(await other.output(['docker', 'ps', '-aq'])).toBe('');
      expect(await other.output(['hostname'])).toBe('web-2\n');
    } finally {
      other.stop();
    }
    expect(await host.output(['docker', 'ps', '-q'])).not.toBe('');
  });
});
