// How long a deploy takes to reach a node that listens: from the message's arrival at SNS to the wake, and to the tick's start.
import { mkdirSync, rmSync, watch } from 'node:fs';
import { join } from 'node:path';
import { CreateTopicCommand, PublishCommand, SubscribeCommand } from '@aws-sdk/client-sns';
import { CreateQueueCommand, DeleteMessageCommand, ReceiveMessageCommand } from '@aws-sdk/client-sqs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cloudRegion } from '../../support/cloud.ts';
import { readSlowness } from '../../support/machine-speed.ts';
import { makeNode, type TestNode } from '../../support/node.ts';
import { type Notified, queueArnOf, startNotified } from '../../support/notified.ts';
import { median } from '../../support/timing.ts';

const tries = 10;
const limit = { timeout: 30_000, interval: 5 };
const ms = (values: readonly number[]): string => `${median(values).toFixed(0)} ms`;

/** Does what reeve-reconcile.path does: the wake goes, the tick starts. Answers when each wake has come. */
function startTicks(node: TestNode): number[] {
  const directory = join(node.root, 'run/wake');
  mkdirSync(directory, { recursive: true });
  const wokenAt: number[] = [];
  const watcher = watch(directory, (_, name) => {
    const wake = join(directory, 'reconcile');
    if (name !== 'reconcile') return;
    try {
      rmSync(wake);
    } catch {
      // The event of its removal.
      return;
    }
    wokenAt.push(Date.now());
    void node.reeve('reconcile');
  });
  onTestFinished(() => watcher.close());
  return wokenAt;
}

/** Until the message has been received, through SNS and SQS, by a program that does nothing else. */
async function timeEmulator({ sns, sqs }: Notified): Promise<number[]> {
  const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName: 'bare' }));
  const { TopicArn } = await sns.send(new CreateTopicCommand({ Name: 'bare' }));
  await sns.send(new SubscribeCommand({ TopicArn, Protocol: 'sqs', Endpoint: queueArnOf('bare') }));
  const times: number[] = [];
  for (let at = 0; at < tries; at += 1) {
    const receiving = sqs.send(new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: 20 }));
    const startedAt = performance.now();
    await sns.send(new PublishCommand({ TopicArn, Message: 'x' }));
    const { Messages = [] } = await receiving;
    times.push(performance.now() - startedAt);
    await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: Messages[0]?.ReceiptHandle }));
  }
  return times;
}

describe('a deploy to a node that listens', () => {
  it('starts its tick within 250 ms of the message, in ten tries of one window', async () => {
    const notified = await startNotified(['web-1']);
    const { operator, proxy } = notified;
    const node = makeNode({
      ...{ nodeId: 'web-1', project: 'latency', storeDir: `${operator.root}/store`, env: notified.env },
      cluster: { notify: 'sns', region: cloudRegion },
    });
    // A job that is not due: the tick has nothing to do.
    const deploy = async (): Promise<void> => {
      const file = notified.writeFile(['web-1'], { project: 'latency', cron: '0 0 29 2 *' });
      const end = await operator.reeve('deploy', file);
      expect([end.status, end.stderr]).toEqual([0, expect.not.stringContaining('warning')]);
    };
    await deploy();
    const wokenAt = startTicks(node);
    const listening = node.start(['listen', '--window', '900']);
    await listening.waitFor('woke reconcile');

    const endedAt = (): unknown => (node.state('runs/reconcile.json') as { endedAt: unknown }).endedAt;
    const toWake: number[] = [];
    const toStart: number[] = [];
    for (let at = 0; at < tries; at += 1) {
      await expect.poll(endedAt, limit).not.toBeNull();
      wokenAt.length = 0;
      proxy.seen.length = 0;
      await deploy();
      await expect.poll(() => wokenAt.length, limit).toBeGreaterThan(0);
      const published = proxy.seen.find(({ action }) => action === 'Publish');
      const publishedAt = performance.timeOrigin + (published?.at ?? Number.NaN);
      const startedAt = (): number =>
        Date.parse((node.state('runs/reconcile.json') as { startedAt: string }).startedAt);
      await expect.poll(startedAt, limit).toBeGreaterThan(publishedAt);
      toWake.push((wokenAt[0] ?? Number.NaN) - publishedAt);
      toStart.push(startedAt() - publishedAt);
    }
    await expect.poll(endedAt, limit).not.toBeNull();
    listening.child.kill('SIGTERM');
    await listening.end;
    const bare = await timeEmulator(notified);
    console.log(
      `figure: from the publish to the wake median ${ms(toWake)}, to the tick's start median ${ms(toStart)} (most ` +
        `${Math.max(...toStart).toFixed(0)} ms); the emulator alone takes ${ms(bare)}`,
    );
    expect(median(toStart)).toBeLessThan(250 * (await readSlowness()));
  });

  it('meets a gap between two windows that is not much more than the timer’s second', async () => {
    const notified = await startNotified(['web-1']);
    await notified.deploy(['web-1']);
    const node = makeNode({
      ...{ nodeId: 'web-1', project: 'gap', storeDir: `${notified.operator.root}/store`, env: notified.env },
      cluster: { notify: 'sns', region: cloudRegion },
    });
    await node.reeve('listen', '--window', '3');
    const gaps: number[] = [];
    for (let at = 0; at < 5; at += 1) {
      notified.proxy.seen.length = 0;
      const startedAt = performance.now();
      const listening = node.start(['listen', '--window', '3']);
      const firstPoll = (): number | undefined =>
        notified.proxy.seen.find(({ action }) => action === 'ReceiveMessage')?.at;
      await expect.poll(firstPoll, limit).toBeDefined();
      gaps.push((firstPoll() ?? Number.NaN) - startedAt);
      await listening.end;
    }
    console.log(
      `figure: between two windows 1 s of the timer, and ${ms(gaps)} until the first poll of the next one`,
    );
    expect(median(gaps)).toBeLessThan(2_000);
  });
});
