// What happens to a machine and how it comes back by itself: nobody types anything but the fault.
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Host } from '../support/host.ts';
import { type Installed, quickIntervals, startInstalled } from '../support/installed.ts';
import { aWebDeploy } from '../support/services.ts';
import { appTimers, describeHost, expectNoneFailed, nextRuns } from '../support/system.ts';

/** A rollout that takes seconds, so that a fault meets it halfway. */
const slowly = { healthCheck: { path: '/healthz', intervalMs: 200, timeoutMs: 2000, healthyThreshold: 15 } };

describeHost('a node of two-second ticks', () => {
  let node: Installed;
  let host: Host;
  beforeAll(async () => {
    node = await startInstalled({ cluster: { intervals: quickIntervals } });
    host = node.host;
    await node.deploy([aWebDeploy()]);
    await node.settled('reeve-demo/web:v1');
  });
  afterAll(() => host?.stop());

  /** Deploys the image and comes back while its rollout is under way. */
  async function deployHalfway(image: string): Promise<void> {
    await node.deploy([aWebDeploy({ image, ...slowly })]);
    await host.waitFor(`the first replica of ${image}`, async () =>
      (await node.containers()).some((container) => container.image === image),
    );
    const { endedAt } = await node.runOf('reconcile');
    expect(endedAt).toBe(null);
  }

  /** Fresh reports, fresh ticks, no dead timer. */
  async function expectAlive(): Promise<void> {
    const since = new Date().toISOString();
    await host.waitFor('a report of a later moment', async () => (await node.status()).lastSeen > since);
    await host.waitFor('a later tick', async () => ((await node.runOf('reconcile')).endedAt ?? '') > since);
    expect(Object.keys(await nextRuns(host))).toEqual(appTimers);
  }

  it('repeats its status with the machine’s load while nothing changes (L112, L113, L114, L115)', async () => {
    const before = await node.status();
    const sampledAt = ({ host: sample }: typeof before): number => Date.parse(sample?.sampledAt ?? '');
    const after = await host.waitFor('two more samples', async () => {
      const status = await node.status();
      return sampledAt(status) - sampledAt(before) >= 3500 && status;
    });
    const { host: sample, services } = after;
    expect(services.map(({ updatedAt: _, ...service }) => service)).toEqual(
      before.services.map(({ updatedAt: _, ...service }) => service),
    );
    expect(sample).toEqual({
      cpuPercent: expect.any(Number),
      memoryUsedMb: expect.any(Number),
      memoryTotalMb: expect.any(Number),
      sampledAt: expect.any(String),
    });
    expect(sample?.memoryUsedMb).toBeLessThan(sample?.memoryTotalMb ?? 0);
  });

  it('goes on after a reboot with the containers it had (L3, L8, O39)', async () => {
    const before = await node.containers();
    await host.reboot();
    await expectAlive();
    await node.settled('reeve-demo/web:v1');
    const after = await node.containers();
    expect(after.map(({ id }) => id)).toEqual(before.map(({ id }) => id));
    expect(await host.waitFor('an answer', () => node.ask('/'))).toMatch(/^web v1 /);
    await expectNoneFailed(host);
  });

  it('has a next run of every timer after timers, targets and services were restarted (O39)', async () => {
    await host.output(['systemctl', 'restart', ...appTimers]);
    expect(Object.keys(await nextRuns(host))).toEqual(appTimers);
    await host.output(['systemctl', 'restart', 'reeve.target']);
    expect(Object.keys(await nextRuns(host))).toEqual(appTimers);
    // The heartbeat fails where the tick that this ends was late already.
    await host.run(['systemctl', 'restart', 'reeve-reconcile.service', 'reeve-heartbeat.service']);
    expect(Object.keys(await nextRuns(host))).toEqual(appTimers);
    await expectAlive();
  });

  it('makes the directories again that somebody has removed, and is woken in them (O47, O48)', async () => {
    const inodes = () =>
      host.sh('stat -c %i /run/reeve/locks /run/reeve/locks/reconcile.lock /run/reeve/wake');
    const before = await inodes();
    await expectAlive();
    // Services have stopped meanwhile, and took nothing with them.
    expect(await inodes()).toBe(before);
    await host.output(['rm', '-rf', '/run/reeve', '/var/cache/reeve']);
    await expectAlive();
    expect(await host.output(['stat', '-c', '%a', '/run/reeve/locks', '/run/reeve/wake'])).toBe('750\n750\n');
    await node.configure({ cluster: { intervals: { ...quickIntervals, tick: '1h' } } });
    await node.deploy([aWebDeploy({ image: 'reeve-demo/web:v2' })]);
    await node.settled('reeve-demo/web:v2');
    await node.configure({ cluster: { intervals: quickIntervals } });
    await node.deploy([aWebDeploy()]);
    await node.settled('reeve-demo/web:v1');
  });

  it('finishes a rollout that a power failure has cut (L3, L32, O39)', async () => {
    await deployHalfway('reeve-demo/web:v2');
    await host.losePower();
    await node.settled('reeve-demo/web:v2');
    expect(await host.waitFor('an answer', () => node.ask('/'))).toMatch(/^web v2 /);
    await expectAlive();
  });

  it('goes on where a tick was killed, and records that it was (L32, O40)', async () => {
    await deployHalfway('reeve-demo/web:v1');
    const killed = await node.runOf('reconcile');
    const { MainPID } = await host.show('reeve-reconcile.service', 'MainPID');
    await host.output(['kill', '-KILL', MainPID]);
    await node.settled('reeve-demo/web:v1');
    const history = (await host.read('/var/lib/reeve/history.ndjson')).trim().split('\n');
    const [end] = history
      .map((line) => JSON.parse(line))
      .filter(({ run, action }) => run === killed.runId && action === 'end');
    expect(end).toMatchObject({
      concern: 'reconcile',
      outcome: 'failed',
      reason: 'ended by SIGKILL without a word (signal)',
    });
    expect(JSON.parse(await host.read('/var/lib/reeve/failures/reeve-reconcile.service.json'))).toMatchObject(
      {
        unit: 'reeve-reconcile.service',
        result: 'signal',
        status: 'KILL',
        count: 1,
      },
    );
    await expectAlive();
  });

  it('finishes a rollout in which the engine restarts (L3, L32)', async () => {
    await deployHalfway('reeve-demo/web:v2');
    await host.output(['systemctl', 'restart', 'docker.service']);
    await node.settled('reeve-demo/web:v2');
    expect(await host.waitFor('an answer', () => node.ask('/'))).toMatch(/^web v2 /);
    await expectAlive();
  });

  it('takes a changed configuration at the next tick, and its intervals when the units are rendered (L17, O39)', async () => {
    expect((await node.shard()).privateIp).toBe('10.99.0.2');
    await host.sh(
      'sed -i s/\'"intervals"\'/\'"advertiseIp":"10.99.0.9","intervals"\'/ /etc/reeve/reeve.yaml',
    );
    await host.waitFor('the new address', async () => (await node.shard()).privateIp === '10.99.0.9');

    const slow = { ...quickIntervals, tick: '30s', liveness: '20s' };
    await node.configure({ cluster: { intervals: slow } });
    const runs = await nextRuns(host);
    expect(Object.keys(runs)).toEqual(appTimers);
    expect(runs['reeve-heartbeat.timer']).toBeLessThanOrEqual(21);
    await node.configure({ cluster: { intervals: quickIntervals } });
    await expectAlive();
    expect((await nextRuns(host))['reeve-reconcile.timer']).toBeLessThanOrEqual(2.2);
  });

  it('keeps on through a clock that steps two days ahead and three hours back, also during a rollout', async () => {
    const dropIn = [
      '[Service]',
      'Environment=LD_PRELOAD=/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1',
      'Environment=FAKETIME_TIMESTAMP_FILE=/etc/clock FAKETIME_NO_CACHE=1',
      'Environment=FAKETIME_DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1',
    ].join('\n');
    await host.write('/etc/clock', '+0\n');
    for (const service of ['reconcile', 'heartbeat']) {
      await host.write(`/etc/systemd/system/reeve-${service}.service.d/clock.conf`, `${dropIn}\n`);
    }
    await host.output(['systemctl', 'daemon-reload']);
    const clockIs = async (offset: string, hours: number): Promise<void> => {
      await host.write('/etc/clock', `${offset}\n`);
      await host.waitFor(`a report ${offset}`, async () => {
        const aheadMs = Date.parse((await node.status()).lastSeen) - Date.now();
        return Math.abs(aheadMs - hours * 3_600_000) < 30_000;
      });
    };

    await deployHalfway('reeve-demo/web:v1');
    await clockIs('+2d', 48);
    await node.settled('reeve-demo/web:v1');
    await deployHalfway('reeve-demo/web:v2');
    await clockIs('-3h', -3);
    await node.settled('reeve-demo/web:v2');
    await clockIs('+0', 0);
    expect(Object.keys(await nextRuns(host))).toEqual(appTimers);
    await node.deploy([aWebDeploy()]);
    await node.settled('reeve-demo/web:v1');
    await expectAlive();
  });
});
