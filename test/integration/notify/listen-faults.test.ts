// One queue's ear when SQS refuses, breaks or does not answer: told once each, tried again, nothing lost.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SendMessageBatchCommand, SendMessageCommand } from '@aws-sdk/client-sqs';
import { describe, expect, it } from 'vitest';
import type { Fault } from '../../support/faulty-proxy.ts';
import { type Ear, startEar } from '../../support/listening.ts';
import { failing, type Notified, refusedBySqs, startNotified } from '../../support/notified.ts';

const limit = { timeout: 40_000 };
const name = 'launch-pad-default-web-1';

async function startHearing({
  windowMs = 300_000,
  ...pace
}: {
  windowMs?: number;
  emptyMs?: number;
} = {}): Promise<{ notified: Notified; ear: Ear; send(): Promise<unknown> }> {
  const notified = await startNotified(['web-1']);
  // A deploy that cannot tell in time has still deployed: the next one makes the queue.
  const deployed = async (): Promise<string[]> => {
    await notified.deploy(['web-1']);
    return await notified.queues.names();
  };
  await expect.poll(deployed, limit).toContain(name);
  const ear = startEar(notified.proxy.endpoint, notified.cloud.env, { name, windowMs, ...pace });
  const QueueUrl = await notified.queues.url(name);
  await expect.poll(() => ear.lines, limit).toEqual([`info: 1 message on queue ${name}: woke reconcile`]);
  // Or the first fault of a test would meet its deletion.
  await expect.poll(() => notified.queues.messages(name), limit).toEqual({ all: 0, hidden: 0 });
  ear.clearWakes();
  const send = (): Promise<unknown> =>
    notified.sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: 'x' }));
  return { notified, ear, send };
}

describe('an ear', () => {
  it.each([
    ['throttled', refusedBySqs(400, 'RequestThrottled'), /400 RequestThrottled: of the test$/],
    ['throttled by 429', refusedBySqs(429, 'ThrottlingException'), /429 ThrottlingException: of the test$/],
    ['refused', refusedBySqs(403, 'AccessDenied'), /403 AccessDenied: of the test$/],
    [
      'told that its clock is wrong',
      refusedBySqs(403, 'InvalidSignatureException', 'Signature expired: it is now earlier than now'),
      /403 InvalidSignatureException: Signature expired: .*; the clock of this machine seems to be wrong$/,
    ],
    ['broken inside', refusedBySqs(500, 'InternalFailure'), /500 InternalFailure: of the test$/],
    ['not served', refusedBySqs(503, 'ServiceUnavailable'), /503 ServiceUnavailable: of the test$/],
    [
      'given HTML',
      { kind: 'answer', status: 502, body: '<html>bad gateway</html>' },
      /answers 502, and not as the service that is asked for$/,
    ],
    [
      'given another shape',
      { kind: 'answer', status: 200, body: '{"Messages":[null]}' },
      /: an answer of another shape$/,
    ],
    ['cut off', { kind: 'reset' }, /ECONNRESET/],
    ['cut off half-way', { kind: 'cutAnswer' }, /aborted|ECONNRESET/],
    ['kept waiting', { kind: 'silence' }, /no whole answer within 2 s$/],
    ['kept waiting for the rest', { kind: 'stall' }, /no whole answer within 2 s$/],
  ] as const)(
    'that is %s says so in one line, pauses, and hears again afterwards',
    async (_, fault, text) => {
      const { notified, ear, send } = await startHearing();
      const before = ear.lines.length;
      notified.asked();
      notified.proxy.fault = failing('ReceiveMessage', fault as Fault);
      const startedAt = performance.now();
      await expect
        .poll(() => notified.asked()['ReceiveMessage'] ?? 0, { ...limit, interval: 1_000 })
        .toBeGreaterThan(0);
      const since = (): string[] => ear.lines.slice(before);
      await expect.poll(() => since().length, limit).toBeGreaterThan(0);
      const failingAt = notified.proxy.seen.length;
      await expect.poll(() => notified.proxy.seen.length, limit).toBeGreaterThan(failingAt + 1);
      expect(since()).toEqual([
        expect.stringMatching(new RegExp(`^warning: cannot receive from queue ${name}: `)),
      ]);
      expect(since()[0]).toMatch(text);
      // 200 ms give or take a quarter between two tries.
      expect(notified.proxy.seen.length).toBeLessThan((performance.now() - startedAt) / 150 + 2);
      notified.proxy.fault = () => undefined;
      await send();
      await expect.poll(ear.wakes, limit).toEqual(['reconcile']);
      expect(since()[1]).toBe(`info: queue ${name} answers again`);
      ear.stop();
      expect(await ear.ended).toMatchObject({ trouble: undefined, missing: false });
    },
  );

  it('that is answered too slowly says so, and hears the message when it comes again', async () => {
    const { notified, ear, send } = await startHearing();
    notified.proxy.fault = failing('ReceiveMessage', { kind: 'trickle', bytesPerSecond: 10 });
    // The poll before may have passed.
    notified.proxy.seen.length = 0;
    await expect.poll(() => notified.proxy.seen.length, { ...limit, interval: 5 }).toBeGreaterThan(0);
    await send();
    await expect
      .poll(() => ear.lines.at(-1), limit)
      .toMatch(/^warning: cannot receive from queue .*: no whole answer within 2 s$/);
    notified.proxy.fault = () => undefined;
    await expect.poll(ear.wakes, limit).toEqual(['reconcile']);
  });

  it('waits for a queue that is made later, and says so once (L128)', async () => {
    const notified = await startNotified(['web-1']);
    const ear = startEar(notified.proxy.endpoint, notified.cloud.env, { name, windowMs: 60_000 });
    await expect.poll(() => notified.proxy.seen.length, limit).toBeGreaterThan(2);
    await notified.deploy(['web-1']);
    // It wakes before it says so.
    await expect
      .poll(() => ear.lines, limit)
      .toEqual([
        `info: queue ${name} is not there yet: a deploy to this node makes it`,
        `info: 1 message on queue ${name}: woke reconcile`,
      ]);
    expect(ear.wakes()).toEqual(['reconcile']);
  });

  it('looks for its queue again when it has gone', async () => {
    const { notified, ear } = await startHearing();
    await notified.queues.delete(name);
    await expect.poll(() => ear.lines.at(-1), limit).toContain('is not there yet');
    await notified.deploy(['web-1']);
    await expect.poll(ear.wakes, limit).toEqual(['reconcile']);
    expect(ear.lines.filter((line) => line.startsWith('warning'))).toEqual([]);
  });

  it.each([
    ['refused', refusedBySqs(403, 'AccessDenied'), /cannot delete messages of queue .*: 403 AccessDenied/],
    [
      'done by half',
      {
        kind: 'answer' as const,
        status: 200,
        headers: { 'content-type': 'application/x-amz-json-1.0' },
        body: '{"Successful":[],"Failed":[{"Id":"0","Code":"InternalError","SenderFault":false}]}',
      },
      /cannot delete messages of queue .*: InternalError.*\(1 of 1\)/,
    ],
  ])('wakes all the same when a deletion is %s', async (_, fault, text) => {
    const { notified, ear, send } = await startHearing();
    notified.proxy.fault = failing('DeleteMessageBatch', fault);
    await send();
    await expect.poll(ear.wakes, limit).toEqual(['reconcile']);
    await expect.poll(() => ear.lines.at(-1), limit).toMatch(text);
    expect((await notified.queues.messages(name)).hidden).toBe(1);
  });

  it('that is stopped with a message in its hands wakes first, then deletes', async () => {
    const { notified, ear, send } = await startHearing();
    let wakesAtDeletion: string[] | undefined;
    notified.proxy.fault = ({ action }) => {
      if (action !== 'DeleteMessageBatch') return undefined;
      wakesAtDeletion = ear.wakes();
      ear.stop();
      return undefined;
    };
    await send();
    expect(await ear.ended).toMatchObject({ messages: 2, trouble: undefined });
    expect(wakesAtDeletion).toEqual(['reconcile']);
    expect(await notified.queues.messages(name)).toEqual({ all: 0, hidden: 0 });
  });

  const empty: Fault = {
    ...{ kind: 'answer', status: 200, headers: { 'content-type': 'application/x-amz-json-1.0' } },
    body: '{}',
  };

  it('asks once a second where long polls are answered at once, and hears what comes', async () => {
    const { notified, ear, send } = await startHearing();
    notified.proxy.fault = failing('ReceiveMessage', empty);
    await expect.poll(() => notified.proxy.seen.at(-1)?.action, limit).toBe('ReceiveMessage');
    notified.proxy.seen.length = 0;
    await expect.poll(() => notified.proxy.seen.length, limit).toBeGreaterThanOrEqual(4);
    const askedAt = notified.proxy.seen.map(({ at }) => at);
    const pauses = askedAt.slice(1).map((at, index) => at - (askedAt[index] ?? 0));
    expect(Math.min(...pauses)).toBeGreaterThan(990);
    notified.proxy.fault = () => undefined;
    await send();
    await expect.poll(ear.wakes, limit).toEqual(['reconcile']);
  });

  it('that pauses between such polls ends at once when it is stopped', async () => {
    const { notified, ear } = await startHearing({ emptyMs: 60_000 });
    let pauses = 0;
    notified.proxy.fault = ({ action }) => {
      if (action !== 'ReceiveMessage') return undefined;
      pauses += 1;
      return empty;
    };
    await expect.poll(() => pauses, limit).toBe(1);
    const stoppedAt = performance.now();
    ear.stop();
    expect(await ear.ended).toMatchObject({ trouble: undefined });
    expect(performance.now() - stoppedAt).toBeLessThan(20_000);
  });

  it('does not spin where nothing can be deleted and messages come again at once, and says so once', async () => {
    const { notified, ear, send } = await startHearing();
    const again: Fault = { ...empty, body: '{"Messages":[{"MessageId":"1","ReceiptHandle":"1"}]}' };
    notified.proxy.fault = ({ action }) => {
      if (action === 'DeleteMessageBatch') return refusedBySqs(403, 'AccessDenied');
      return action === 'ReceiveMessage' ? again : undefined;
    };
    await expect.poll(ear.wakes, limit).toEqual(['reconcile']);
    notified.proxy.seen.length = 0;
    const startedAt = performance.now();
    await expect.poll(() => notified.proxy.seen.length, limit).toBeGreaterThanOrEqual(6);
    // 200 ms give or take a quarter for two requests.
    expect(notified.proxy.seen.length).toBeLessThan(((performance.now() - startedAt) / 150) * 2 + 4);
    const warnings = ear.lines.filter((line) => line.startsWith('warning'));
    expect(warnings).toEqual([
      expect.stringMatching(`^warning: cannot delete messages of queue ${name}: 403 `),
    ]);
    notified.proxy.fault = () => undefined;
    await send();
    await expect
      .poll(() => ear.lines.at(-1), limit)
      .toBe(`info: messages of queue ${name} are deleted again`);
  });

  it('that is stopped in a burst which cannot be deleted ends within what its unit has for a stop', async () => {
    const { notified, ear: before } = await startHearing();
    before.stop();
    await before.ended;
    const QueueUrl = await notified.queues.url(name);
    const Entries = Array.from({ length: 10 }, (_, index) => ({ Id: `m${index}`, MessageBody: 'anything' }));
    for (let sent = 0; sent < 50; sent += 1)
      await notified.sqs.send(new SendMessageBatchCommand({ QueueUrl, Entries }));
    let stoppedAt = 0;
    notified.proxy.fault = ({ action }) => {
      if (action !== 'DeleteMessageBatch') return undefined;
      if (stoppedAt === 0) ear.stop();
      stoppedAt ||= performance.now();
      return { kind: 'silence' };
    };
    const { endpoint } = notified.proxy;
    const ear = startEar(endpoint, notified.cloud.env, { name, windowMs: 60_000, answerMs: 6_000 });
    expect(await ear.ended).toMatchObject({ trouble: undefined });
    expect(ear.wakes()).toEqual(['reconcile']);
    const unit = readFileSync(join(import.meta.dirname, '../../../systemd/reeve-listen.service'), 'utf8');
    const stopSeconds = Number(/^TimeoutStopSec=(\d+)s$/m.exec(unit)?.[1]);
    expect(performance.now() - stoppedAt).toBeLessThan((stopSeconds * 1000) / 2);
    const warnings = ear.lines.filter((line) => line.startsWith('warning'));
    expect(warnings).toEqual([
      `warning: cannot delete messages of queue ${name}: no whole answer within 6 s`,
    ]);
  });

  it('ends with its window', async () => {
    const startedAt = performance.now();
    const { ear } = await startHearing({ windowMs: 8_000 });
    expect(await ear.ended).toEqual({
      ...{ queue: name, concern: 'reconcile', messages: 1, missing: false, trouble: undefined },
    });
    expect(performance.now() - startedAt).toBeLessThan(60_000);
  });
});
