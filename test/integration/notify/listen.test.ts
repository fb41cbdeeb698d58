// `reeve listen` as whole processes, against queues that real deploys have made.
import { SendMessageBatchCommand } from '@aws-sdk/client-sqs';
import { describe, expect, it } from 'vitest';
import type { RunRecord } from '../../../src/lib/state/run-record.ts';
import { makeListeningNode } from '../../support/listening.ts';
import { startNotified } from '../../support/notified.ts';

const limit = { timeout: 40_000 };
const queue = 'launch-pad-default-web-1';

describe('reeve listen', () => {
  it('wakes the reconcile for a deploy, and deletes what it has received (L129-L131)', async () => {
    const notified = await startNotified(['web-1']);
    await notified.deploy(['web-1'], '--no-notify');
    const node = makeListeningNode(notified.env);
    // The message waits from before the window: what comes between two windows is not lost.
    await notified.deploy(['web-1']);
    const listening = node.start('--window', '8');
    await expect.poll(node.wakes, limit).toEqual(['reconcile']);
    const end = await listening.ended;
    expect([end.status, end.stdout]).toEqual([0, `queue ${queue}: 1 message\n`]);
    expect(end.stderr).toBe(`1 message on queue ${queue}: woke reconcile\n`);
    expect((await notified.queues.messages(queue)).all).toBe(0);
    const record = node.machine.json('state/runs/listen.json') as RunRecord;
    expect(record).toMatchObject({ concern: 'listen', outcome: 'done', exitCode: 0 });
    // A poll that knew nothing of its window would last 20 s.
    expect(record.durationMs).toBeLessThan(16_000);
  });

  it('asks for nothing that its role does not let it (L132, L133)', async () => {
    const notified = await startNotified(['web-1']);
    await notified.deploy(['web-1']);
    notified.asked();
    await makeListeningNode(notified.env).start('--window', '6').ended;
    const asked = Object.keys(notified.asked()).sort();
    expect(asked).toEqual(['DeleteMessageBatch', 'GetQueueUrl', 'ReceiveMessage']);
    await notified.queues.delete(queue);
    const end = await makeListeningNode(notified.env).start('--window', '6').ended;
    expect([end.status, end.stdout]).toEqual([0, `queue ${queue} is not there yet\n`]);
    expect(notified.asked()).toEqual({ GetQueueUrl: 1 });
    expect(await notified.queues.names()).toEqual([]);
  });

  it('on one box listens for both roles, each under its own id (L134)', async () => {
    const notified = await startNotified(['web-1', 'web-2']);
    const { operator } = notified;
    operator.store('nodes/web-1-edge/node.json', { nodeId: 'web-1-edge', role: 'edge' });
    const ingress = { domain: 'blog.example.com', port: 80, edge: 'web-1-edge' };
    await operator.reeve('deploy', notified.writeFile(['web-2'], { ingress }));
    const node = makeListeningNode(notified.env, { role: ['app', 'edge'] });
    const listening = node.start('--window', '60');
    await listening.waitFor(`queue ${queue} is not there yet`);
    await expect.poll(node.wakes, limit).toEqual(['edge']);
    listening.child.kill('SIGTERM');
    await listening.ended;
    const edge = makeListeningNode(notified.env, { role: 'edge', nodeId: 'web-1-edge' });
    await operator.reeve('deploy', notified.writeFile(['web-2'], { ingress }));
    const again = edge.start('--window', '60');
    // A poll that was cut off may have taken it along: then it comes again after ten seconds.
    await expect.poll(edge.wakes, limit).toEqual(['edge']);
    again.child.kill('SIGTERM');
    await again.ended;
  });

  it('ends at once when it is told to, in the middle of a poll, and says that it is alive until then', async () => {
    const notified = await startNotified(['web-1']);
    await notified.deploy(['web-1']);
    const node = makeListeningNode(notified.env);
    const listening = node.start('--window', '900');
    await listening.waitFor('1 message on queue');
    await expect
      .poll(() => notified.proxy.seen.slice(-2).map(({ action }) => action), limit)
      .toEqual(['DeleteMessageBatch', 'ReceiveMessage']);
    const record = node.machine.json('state/runs/listen.json') as RunRecord;
    expect(record).toMatchObject({ endedAt: null, step: { name: 'window' } });
    expect(Date.parse(record.step?.deadlineAt ?? '') - Date.parse(record.startedAt)).toBeGreaterThan(900_000);
    const stoppedAt = performance.now();
    listening.child.kill('SIGTERM');
    const end = await listening.ended;
    expect([end.status, end.stderr]).toEqual([143, `1 message on queue ${queue}: woke reconcile\n`]);
    expect(performance.now() - stoppedAt).toBeLessThan(8_000);
    expect(node.machine.json('state/runs/listen.json')).toMatchObject({
      exitCode: 0,
      endedAt: expect.any(String),
    });
  });

  it('is looked after by doctor, which knows a window that is under way', async () => {
    const notified = await startNotified(['web-1']);
    const node = makeListeningNode(notified.env);
    const findings = async (): Promise<string[]> => {
      const end = await node.machine.start(['doctor', '--json'], notified.env).ended;
      const told = (JSON.parse(end.stdout) as { findings: { check: string; what: string }[] }).findings;
      return told
        .filter(({ check, what }) => check === 'runs' && what.includes('listen'))
        .map(({ what }) => what);
    };
    expect(await findings()).toEqual(['listen has had no good run yet, and one is due every 15m']);
    const listening = node.start('--window', '60');
    await listening.waitFor('is not there yet');
    expect(await findings()).toEqual([]);
    listening.child.kill('SIGTERM');
    await listening.ended;
    expect(await findings()).toEqual([]);
  });

  it('is one at a time', async () => {
    const notified = await startNotified(['web-1']);
    await notified.deploy(['web-1']);
    const node = makeListeningNode(notified.env);
    await node.start('--window', '60').waitFor('1 message on queue');
    const second = await node.start('--window', '60').ended;
    expect([second.status, second.stderr]).toEqual([75, expect.stringContaining('lock listen is held by')]);
  });

  it('turns a burst of 500 messages into few wakes (L135)', async () => {
    const notified = await startNotified(['web-1']);
    await notified.deploy(['web-1']);
    const QueueUrl = await notified.queues.url(queue);
    const Entries = Array.from({ length: 10 }, (_, index) => ({ Id: `m${index}`, MessageBody: 'anything' }));
    for (let sent = 0; sent < 50; sent += 1)
      await notified.sqs.send(new SendMessageBatchCommand({ QueueUrl, Entries }));
    const end = await makeListeningNode(notified.env).start('--window', '8').ended;
    expect(end.stdout).toBe(`queue ${queue}: 501 messages\n`);
    expect(end.stderr.match(/woke reconcile/g)).toHaveLength(1);
    expect(await notified.queues.messages(queue)).toEqual({ all: 0, hidden: 0 });
  });

  it.each([
    [{ notify: 'none' }, {}, 78, 'cannot listen: cluster.notify is none in '],
    [{ nodeId: 'n'.repeat(64) }, {}, 65, 'characters, and SQS takes 80'],
  ])('says what is wrong with %o', async (cluster, env, status, text) => {
    const end = await makeListeningNode(env, cluster).start().ended;
    expect([end.status, end.stderr]).toEqual([status, expect.stringContaining(text)]);
  });

  it('is off where LAUNCHPAD_ONCE is set', async () => {
    const end = await makeListeningNode({ LAUNCHPAD_ONCE: '1' }).start('--window', '900').ended;
    expect([end.status, end.stdout]).toEqual([0, 'LAUNCHPAD_ONCE is set: nobody listens\n']);
  });

  it('does not spin under systemd: one that fails at once stays for a while, and goes when told to', async () => {
    const node = makeListeningNode({ INVOCATION_ID: 'a'.repeat(32) }, { notify: 'none' });
    const startedAt = performance.now();
    const program = node.start('--window', '900');
    const timer = setTimeout(() => program.child.kill('SIGTERM'), 8_000);
    const end = await program.ended;
    clearTimeout(timer);
    expect(performance.now() - startedAt).toBeGreaterThan(7_900);
    expect([end.status, end.stderr]).toEqual([143, expect.stringContaining('cluster.notify is none')]);
  });

  it('fails where its queue cannot be heard at the end of the window, so that somebody is told', async () => {
    const notified = await startNotified(['web-1']);
    await notified.deploy(['web-1']);
    notified.proxy.fault = () => ({ kind: 'answer', status: 503, body: '{}' });
    const node = makeListeningNode(notified.env);
    const end = await node.start('--window', '6').ended;
    expect(end.status).toBe(69);
    expect(node.machine.json('state/runs/listen.json')).toMatchObject({
      ...{ outcome: 'failed', exitCode: 69 },
      error: expect.stringMatching(`^cannot find queue ${queue}: \\S+ answers 503, and not as the service`),
    });
  });
});
