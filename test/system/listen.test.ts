// A node whose deploys notify: systemd starts one window of listening after another, and what comes starts the tick.
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Host } from '../support/host.ts';
import { type Installed, quickIntervals, startInstalled } from '../support/installed.ts';
import {
  askQueues,
  endpoint,
  isInBucket,
  makeTopic,
  prepareCloud,
  publish,
} from '../support/installed-store.ts';
import { describeHost, nextRuns, tellFigure } from '../support/system.ts';
import { median } from '../support/timing.ts';

const service = 'reeve-listen.service';
const queue = 'launch-pad-default-web-1';
/** No timer helps here. */
const rare = { intervals: { ...quickIntervals, tick: '1h', liveness: '30s' } };
const notified = { ...rare, notify: 'sns', region: 'us-east-1', endpoint };

describeHost('a node that listens', () => {
  let node: Installed;
  let host: Host;
  beforeAll(async () => {
    node = await startInstalled({ cluster: rare });
    host = node.host;
    if (!isInBucket) await prepareCloud(host);
  });
  afterAll(() => host?.stop());

  const isListening = async (): Promise<boolean> =>
    (await host.show(service, 'ActiveState')).ActiveState === 'active';
  const findQueue = async (): Promise<string> => {
    const found = (await askQueues(host, 'GetQueueUrl', { QueueName: queue })) as { QueueUrl: string };
    return found.QueueUrl;
  };
  const send = async (url: string): Promise<void> => {
    await askQueues(host, 'SendMessage', { QueueUrl: url, MessageBody: 'x' });
  };
  const startOf = async (concern: string): Promise<number> =>
    Date.parse((await node.runOf(concern)).startedAt);

  it('begins when the configuration says so, finds no queue yet, and that is no failure', async () => {
    expect(await host.show('reeve-listen.timer', 'ActiveState')).toEqual({ ActiveState: 'inactive' });
    await node.configure({ cluster: notified });
    await host.waitFor('a window', isListening);
    await host.waitFor('the look for the queue', async () => {
      const entries = await host.journal('-u', service);
      return entries.some(({ message }) => message.includes(`queue ${queue} is not there yet`));
    });
    expect(await host.show('reeve-listen.timer', 'ActiveState')).toEqual({ ActiveState: 'active' });
    const verified = await node.reeve('units', 'verify');
    expect([verified.status, verified.stdout + verified.stderr]).toEqual([0, expect.any(String)]);
  });

  it('starts its tick for a message that waited for the next window, from inside the sandbox (L131)', async () => {
    await askQueues(host, 'CreateQueue', { QueueName: queue });
    await send(await findQueue());
    // Sooner than it would look again by itself.
    await host.output(['systemctl', 'stop', service]);
    await host.waitFor('the next window', isListening);
    await host.waitFor('the message that waited to be taken', async () => {
      const entries = await host.journal('-u', service);
      return entries.some(({ message }) => message.includes('woke reconcile'));
    });
  });

  // The machine may be busy with something else for as long as a measurement takes.
  it('starts its tick within 250 ms of a publish, in the median of ten inside one window (L4, L131)', {
    retry: 3,
  }, async () => {
    const topic = await makeTopic(host, 'launch-pad-default', queue);
    await host.waitFor('a window', isListening);
    const windowOf = async (): Promise<string> => (await host.show(service, 'InvocationID')).InvocationID;
    const window = await windowOf();
    const measure = async (wake: () => Promise<unknown>): Promise<number> => {
      await host.waitFor(
        'the tick before to end',
        async () => (await node.runOf('reconcile')).endedAt !== null,
      );
      const wokenAt = Date.now();
      await wake();
      await host.waitFor('the tick', async () => (await startOf('reconcile')) > wokenAt, { everyMs: 20 });
      return (await startOf('reconcile')) - wokenAt;
    };
    const [times, byHand]: [number[], number[]] = [[], []];
    for (let at = 0; at < 10; at += 1) {
      times.push(await measure(() => publish(host, topic)));
      byHand.push(await measure(() => host.sh('touch /run/reeve/wake/reconcile')));
    }
    expect(await windowOf()).toBe(window);
    tellFigure(
      `under systemd, from the publish to the tick's start: median ${median(times)} ms; from a wake by hand: ${median(byHand)} ms`,
    );
    // Of a machine on which a wake by hand takes more than half of that, twice as much as such a one.
    expect(median(times)).toBeLessThan(Math.max(250, 2 * median(byHand)));
  });

  it('is stopped at once, and goes on with the next window, whose timer never rests', async () => {
    const startedAt = performance.now();
    await host.output(['systemctl', 'stop', service]);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    await host.waitFor('the next window', isListening);
    expect((await host.show(service, 'Result')).Result).toBe('success');
    expect(await host.sh('systemctl list-units --failed --no-legend "reeve*"')).toBe('');
  });

  it('has short gaps between its windows', async () => {
    await host.sh(
      `mkdir -p /etc/systemd/system/${service}.d; printf '[Service]\\nExecStart=\\nExecStart=/usr/local/bin/reeve listen --window 2 --wait 600\\n' >/etc/systemd/system/${service}.d/60-short.conf; systemctl daemon-reload; systemctl stop ${service}`,
    );
    const gaps: number[] = [];
    let endedAt = 0;
    const haveSix = async (): Promise<boolean> => {
      const shown = await host.show(
        service,
        'InactiveEnterTimestampMonotonic',
        'InactiveExitTimestampMonotonic',
      );
      const enter = Number(shown.InactiveEnterTimestampMonotonic);
      const exit = Number(shown.InactiveExitTimestampMonotonic);
      if (exit > enter && enter > endedAt) {
        endedAt = enter;
        gaps.push((exit - enter) / 1000);
      }
      return gaps.length >= 6;
    };
    await host.waitFor('six windows', haveSix, { timeoutMs: 180_000 });
    tellFigure(`under systemd, between two windows of listening: median ${median(gaps).toFixed(0)} ms`);
    expect(median(gaps)).toBeLessThan(2_000);
    expect(Object.keys(await nextRuns(host))).toContain('reeve-heartbeat.timer');
  });

  it('ends when the configuration says so', async () => {
    await node.configure({ cluster: rare });
    expect(await host.show('reeve-listen.timer', 'ActiveState')).toEqual({ ActiveState: 'inactive' });
    await host.waitFor('the last window to end', async () => !(await isListening()));
  });
});
