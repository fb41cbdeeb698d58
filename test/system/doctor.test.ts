// `reeve doctor` where a real systemd answers: what is well, and units that will not run again.
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Host } from '../support/host.ts';
import { type Installed, startInstalled } from '../support/installed.ts';
import { aWebDeploy } from '../support/services.ts';
import { describeHost } from '../support/system.ts';

type Finding = { check: string; level: string; what: string; where?: string; fix?: string };

describeHost('the doctor of an installed node', () => {
  let node: Installed;
  let host: Host;
  beforeAll(async () => {
    node = await startInstalled();
    host = node.host;
    await node.deploy([aWebDeploy()]);
    await node.settled('reeve-demo/web:v1');
    await host.waitFor('a heartbeat', async () => (await node.runOf('heartbeat')).outcome === 'done');
  });
  afterAll(() => host?.stop());

  async function examine(): Promise<{ status: number | null; wrong: Finding[]; findings: Finding[] }> {
    const end = await node.reeve('doctor', '--json');
    const { findings } = JSON.parse(end.stdout) as { findings: Finding[] };
    const wrong = findings.filter(({ level }) => level === 'failure' || level === 'warning');
    return { status: end.status, wrong, findings };
  }

  it('finds nothing wrong', async () => {
    const { status, wrong, findings } = await examine();
    expect([status, wrong]).toEqual([0, []]);
    const told = findings.filter(({ check }) => check === 'units').map(({ what }) => what);
    expect(told).toEqual([
      expect.stringMatching(/^\d+ units in order$/),
      expect.stringMatching(/^\d+ timers, each with a next run$/),
    ]);
  });

  it('finds a timer that is stopped, and one that looks active without a next run (O39)', async () => {
    await host.output(['systemctl', 'stop', 'reeve-heartbeat.timer']);
    // Its only instant is long past.
    const empty =
      '[Timer]\nOnActiveSec=\nOnUnitInactiveSec=\nOnCalendar=2020-01-01 00:00:00 UTC\nPersistent=no\n';
    await host.write('/etc/systemd/system/reeve-reconcile.timer.d/never.conf', empty);
    await host.output(['systemctl', 'daemon-reload']);
    await host.output(['systemctl', 'restart', 'reeve-reconcile.timer']);
    const { status, wrong } = await examine();
    expect(status).toBe(1);
    expect(wrong.map(({ check, where, what }) => [check, where, what])).toEqual([
      [
        'units',
        'reeve-heartbeat.timer',
        expect.stringMatching(/^it is stopped, although reeve.*\.target wants it$/),
      ],
      ['units', 'reeve-reconcile.timer', 'it has no next run'],
    ]);
    await host.output(['rm', '/etc/systemd/system/reeve-reconcile.timer.d/never.conf']);
    await host.output(['systemctl', 'daemon-reload']);
    await host.output(['systemctl', 'restart', 'reeve-reconcile.timer', 'reeve-heartbeat.timer']);
    await host.waitFor('all to be well again', async () => (await examine()).status === 0);
  });

  it('finds a unit that was started too often (R60)', async () => {
    const limit =
      '[Unit]\nStartLimitIntervalSec=1h\nStartLimitBurst=1\n[Service]\nExecStart=\nExecStart=/bin/true\n';
    await host.write('/etc/systemd/system/reeve-prune.service.d/limit.conf', limit);
    await host.output(['systemctl', 'daemon-reload']);
    for (let round = 0; round < 3; round++) await host.run(['systemctl', 'start', 'reeve-prune.service']);
    const { status, wrong } = await examine();
    expect(status).toBe(1);
    expect(wrong).toContainEqual({
      check: 'units',
      level: 'failure',
      what: 'it was started too often and will not start again (start-limit-hit)',
      where: 'reeve-prune.service',
      fix: 'systemctl reset-failed reeve-prune.service, then systemctl start reeve-prune.service',
    });
  });
});
