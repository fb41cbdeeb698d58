// Deploys whose nodes cannot be told: SNS or SQS refuse, break or do not answer.
import { CreateQueueCommand } from '@aws-sdk/client-sqs';
import { describe, expect, it } from 'vitest';
import { queuePolicy } from '../../../src/lib/cluster/notification.ts';
import {
  failing,
  queueArnOf,
  refusedBySns,
  refusedBySqs,
  startNotified,
  topicArnOf,
  warningsOf,
} from '../../support/notified.ts';

describe('a deploy goes on, with one warning that names what failed (L125), when', () => {
  const denied = refusedBySqs(403, 'AccessDenied', 'not for you');
  const deniedForm = refusedBySns(403, 'AuthorizationError', 'not for you');
  const emptyPage = { kind: 'answer', status: 200, body: '<page></page>' } as const;
  const noUrls = { kind: 'answer', status: 200, body: '{"QueueUrls":[null]}' } as const;

  it.each([
    ['sns', deniedForm, /cannot create topic launch-pad-default: 403 AuthorizationError\w*: not for you$/],
    ['Publish', deniedForm, /cannot publish to topic launch-pad-default: 403 /],
    ['SetTopicAttributes', deniedForm, /cannot set the policy of topic launch-pad-default: 403 /],
    ['ListQueues', denied, /cannot list queues launch-pad-default-\*: 403 AccessDenied: not for you$/],
    ['CreateQueue', denied, /cannot create queue launch-pad-default-web-\d: 403 .*\(and 1 more of 2\)$/],
    ['Subscribe', deniedForm, /cannot subscribe queue launch-pad-default-web-\d: 403 /],
    [
      'CreateTopic',
      emptyPage,
      /cannot create topic launch-pad-default: the answer does not say that it is done/,
    ],
    [
      'Publish',
      emptyPage,
      /cannot publish to topic launch-pad-default: the answer does not say that it is done$/,
    ],
    ['ListQueues', noUrls, /cannot list queues launch-pad-default-\*: an answer of another shape$/],
    ['sns', { kind: 'reset' }, /cannot create topic launch-pad-default: .*ECONNRESET/],
    ['sns', { kind: 'answer', status: 503, body: 'busy' }, /cannot create topic launch-pad-default: /],
    ['sqs', { kind: 'reset' }, /cannot list queues launch-pad-default-\*: .*ECONNRESET/],
  ] as const)('%s fails', async (what, fault, text) => {
    const notified = await startNotified(['web-1', 'web-2']);
    notified.proxy.fault = failing(what, fault);
    const startedAt = performance.now();
    const end = await notified.deploy(['web-1', 'web-2']);
    expect(performance.now() - startedAt).toBeLessThan(12_000);
    expect([end.status, end.stdout]).toEqual([0, '2 changes on web-1, web-2\n']);
    const warnings = warningsOf(end);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(/^warning: nodes may find the change at their next tick only: /);
    expect(warnings[0]).toMatch(text);
    expect(notified.operator.stored('nodes/web-1/desired.json')).toBeDefined();
  });

  // Other work on the machine spoils a measurement now and then.
  it.each([
    ['sns', { kind: 'silence' }, 'cannot create topic'],
    ['sqs', { kind: 'stall' }, 'cannot list queues'],
    ['Publish', { kind: 'trickle', bytesPerSecond: 10 }, 'cannot publish to topic'],
  ] as const)('%s does not answer (%o), and within ten seconds', { retry: 2 }, async (what, fault, text) => {
    const notified = await startNotified(['web-1']);
    const quick = performance.now();
    await notified.deploy(['web-1'], '--no-notify');
    const withoutMs = performance.now() - quick;
    notified.proxy.fault = failing(what, fault);
    const startedAt = performance.now();
    const end = await notified.deploy(['web-1']);
    expect(performance.now() - startedAt - withoutMs).toBeLessThan(10_500);
    expect(end.status).toBe(0);
    expect(warningsOf(end)).toEqual([expect.stringContaining(text)]);
  });

  it.each([
    ['throttles', refusedBySqs(400, 'RequestThrottled'), 3, /400 RequestThrottled: of the test/],
    ['throttles by 429', refusedBySqs(429, 'ThrottlingException'), 3, /429 ThrottlingException: of the test/],
    ['has errors', refusedBySqs(500, 'InternalFailure'), 3, /500 InternalFailure: of the test/],
    ['finds nothing', refusedBySqs(404, 'NotFound'), 1, /404 NotFound: of the test/],
    [
      'refuses the clock',
      refusedBySqs(403, 'InvalidSignatureException', 'Signature expired: it is earlier than now'),
      3,
      /the clock of this machine seems to be wrong/,
    ],
  ] as const)('SQS %s, which is tried again or not as it should be', async (_, fault, tries, text) => {
    const notified = await startNotified(['web-1']);
    notified.proxy.fault = failing('ListQueues', fault);
    const end = await notified.deploy(['web-1']);
    expect([end.status, warningsOf(end)]).toEqual([0, [expect.stringMatching(text)]]);
    expect(notified.asked()).toMatchObject({ ListQueues: tries, Publish: 1 });
  });

  it('nobody listens at the endpoint', async () => {
    const notified = await startNotified(['web-1']);
    await notified.cloud.stop();
    Object.assign(notified.operator.environment, { AWS_ENDPOINT_URL: notified.cloud.endpoint });
    const end = await notified.deploy(['web-1']);
    expect(end.status).toBe(0);
    expect(warningsOf(end)).toEqual([
      expect.stringMatching(/cannot create topic launch-pad-default: .*ECONNREFUSED/),
    ]);
  });

  it('cluster.json cannot be understood: the topic is published to all the same', async () => {
    const notified = await startNotified(['web-1']);
    notified.operator.write('store/clusters/default/cluster.json', 'not JSON');
    const end = await notified.deploy(['web-1']);
    expect([end.status, warningsOf(end)]).toEqual([
      0,
      [
        'warning: nodes may find the change at their next tick only: cannot change cluster.json: it is not JSON',
      ],
    ]);
    expect(notified.operator.stored('clusters/default/cluster.json')).toBe('not JSON');
    expect(await notified.queues.receive('launch-pad-default-web-1')).toHaveLength(1);
  });

  it('a node’s name is too long for a queue', async () => {
    const long = 'n'.repeat(64);
    const notified = await startNotified(['web-1', long]);
    const end = await notified.deploy(['web-1', long]);
    expect([end.status, warningsOf(end)]).toEqual([
      0,
      [expect.stringContaining(`"launch-pad-default-${long}" has 83 characters, and SQS takes 80`)],
    ]);
    expect(await notified.queues.receive('launch-pad-default-web-1')).toHaveLength(1);
  });

  it('the queue is that of another cluster’s node, and stays it', async () => {
    const notified = await startNotified(['web-1', 'b-web']);
    const name = 'launch-pad-default-b-web';
    const Policy = JSON.stringify(queuePolicy(queueArnOf(name), topicArnOf('default-b')));
    await notified.sqs.send(new CreateQueueCommand({ QueueName: name, Attributes: { Policy } }));
    const end = await notified.deploy(['web-1', 'b-web']);
    expect([end.status, warningsOf(end)]).toEqual([
      0,
      [expect.stringContaining(`cannot use queue ${name}: it is for topic ${topicArnOf('default-b')}`)],
    ]);
    expect(await notified.queues.policy(name)).toBe(Policy);
    expect(await notified.queues.receive('launch-pad-default-web-1')).toHaveLength(1);
  });
});
