// A reconcile that stands still with its lock held: the node must not look alive, somebody is told once, and its unit ends it.
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Host } from '../support/host.ts';
import { type Installed, quickIntervals, startInstalled } from '../support/installed.ts';
import { aWebDeploy } from '../support/services.ts';
import { appTimers, describeHost, nextRuns } from '../support/system.ts';

const told = '/var/lib/reeve/told';
const heartbeat = 'reeve-heartbeat.service';

describeHost('a node whose reconcile stands still', () => {
  let node: Installed;
  let host: Host;
  beforeAll(async () => {
    node = await startInstalled({
      // A heartbeat that meets a tick which is a little late is no news.
      cluster: { intervals: { ...quickIntervals, tick: '5s' } },
      hooks: { failure: { command: ['/usr/local/bin/page', '{unit}'] } },
    });
    host = node.host;
    await host.write('/usr/local/bin/page', `#!/bin/sh\necho "$1" >>${told}\n`, '0755');
    // Half an hour as shipped.
    await host.write(
      '/etc/systemd/system/reeve-reconcile.service.d/soon.conf',
      '[Service]\nTimeoutStartSec=45s\n',
    );
    await host.output(['systemctl', 'daemon-reload']);
    await node.deploy([aWebDeploy()]);
    await node.settled('reeve-demo/web:v1');
    await host.waitFor('a heartbeat', async () => (await node.runOf('heartbeat')).outcome === 'done');
  });
  afterAll(() => host?.stop());

  async function pages(): Promise<string[]> {
    return (await host.exists(told)) ? (await host.read(told)).trim().split('\n') : [];
  }

  it('goes stale and pages once', async () => {
    const slow = {
      healthCheck: { path: '/healthz', intervalMs: 500, timeoutMs: 2000, healthyThreshold: 100 },
    };
    await node.deploy([aWebDeploy({ image: 'reeve-demo/web:v2', ...slow })]);
    await host.waitFor('the rollout', async () =>
      (await node.containers()).some(({ image }) => image === 'reeve-demo/web:v2'),
    );
    const { MainPID } = await host.show('reeve-reconcile.service', 'MainPID');
    await host.output(['kill', '-STOP', MainPID]);
    const record = await host.waitFor('three heartbeats to fail', async () => {
      const failure = JSON.parse(await host.read(`/var/lib/reeve/failures/${heartbeat}.json`));
      return failure.count >= 3 && failure;
    });
    expect(record).toMatchObject({ unit: heartbeat, result: 'exit-code', status: '1', notified: true });
    expect(record.lastLines.join('\n')).toContain('cannot call node "web-1" alive: ');
    expect(await pages()).toEqual([heartbeat]);
    const { lastSeen } = await node.status();
    const failedSince = Date.parse(record.firstAt);
    expect(Date.parse(lastSeen)).toBeLessThan(failedSince);
    // Whoever asks is told, too.
    expect((await node.reeve('status')).stdout).toContain('cannot call node "web-1" alive: ');
  });

  it('is ended by its unit, goes on, and is alive again without another page for the heartbeat (O40)', async () => {
    await host.waitFor('the unit to end it', async () => (await pages()).includes('reeve-reconcile.service'));
    // The hook has been called; that it was is written down a moment later.
    const failure = await host.waitFor('the page to be recorded', async () => {
      const record = JSON.parse(await host.read('/var/lib/reeve/failures/reeve-reconcile.service.json'));
      return record.notified === true ? record : undefined;
    });
    expect(failure).toMatchObject({ result: 'timeout', count: 1 });
    const since = new Date().toISOString();
    await host.waitFor('a heartbeat again', async () => {
      const run = await node.runOf('heartbeat');
      return run.startedAt > since && run.outcome === 'done';
    });
    expect((await node.status()).lastSeen > since).toBe(true);
    await node.deploy([aWebDeploy()]);
    await node.settled('reeve-demo/web:v1');
    expect(await pages()).toEqual([heartbeat, 'reeve-reconcile.service']);
    expect(Object.keys(await nextRuns(host))).toEqual(appTimers);
  });
});
