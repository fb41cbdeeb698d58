// Deploys that tell their nodes: whole processes against an emulator of SNS and SQS that a proxy stands before.
import {
  GetSubscriptionAttributesCommand,
  GetTopicAttributesCommand,
  ListSubscriptionsByTopicCommand,
  SetTopicAttributesCommand,
} from '@aws-sdk/client-sns';
import { CreateQueueCommand, DeleteQueueCommand, SetQueueAttributesCommand } from '@aws-sdk/client-sqs';
import { describe, expect, it } from 'vitest';
import { queuePolicy, topicPolicy } from '../../../src/lib/cluster/notification.ts';
import { cloudRegion } from '../../support/cloud.ts';
import { queueArnOf, startNotified, topicArnOf, warningsOf } from '../../support/notified.ts';
import { isAllowed } from '../../support/policy.ts';

describe('a first deploy with notify: sns', () => {
  it('makes topic, queues and subscriptions, saves the topic and tells every node (L116-L124, L138)', async () => {
    const notified = await startNotified(['web-1', 'web-2', 'web-3'], { clusterId: 'prod' });
    const { operator, sns, asked } = notified;
    const before =
      '{ "clusterId":"prod", "createdBy": "x",\n"autoscale": {"max": 3.0}, "snsTopicArn": null }\n';
    operator.write('store/clusters/prod/cluster.json', before);
    const startedAt = new Date();
    const end = await notified.deploy(['web-1', 'web-2']);
    expect([end.status, warningsOf(end)]).toEqual([0, []]);
    expect(asked()).toEqual({
      ...{ CreateTopic: 1, GetTopicAttributes: 1, SetTopicAttributes: 1, ListSubscriptionsByTopic: 1 },
      ...{ ListQueues: 1, CreateQueue: 2, Subscribe: 2, Publish: 1 },
    });
    const topic = topicArnOf('prod');
    const { Attributes } = await sns.send(new GetTopicAttributesCommand({ TopicArn: topic }));
    expect(JSON.parse(Attributes?.['Policy'] ?? '')).toEqual(topicPolicy(topic));
    expect(operator.stored('clusters/prod/cluster.json')).toBe(before.replace('null', `"${topic}"`));

    const names = ['launch-pad-prod-web-1', 'launch-pad-prod-web-2'];
    expect(await notified.queues.names()).toEqual(names);
    const { Subscriptions = [] } = await sns.send(new ListSubscriptionsByTopicCommand({ TopicArn: topic }));
    expect(Subscriptions.map(({ Protocol, Endpoint }) => [Protocol, Endpoint])).toEqual(
      expect.arrayContaining(names.map((name) => ['sqs', queueArnOf(name)])),
    );
    for (const { SubscriptionArn } of Subscriptions) {
      const answer = await sns.send(new GetSubscriptionAttributesCommand({ SubscriptionArn }));
      expect(answer.Attributes?.['RawMessageDelivery']).toBe('true');
    }
    for (const name of names) {
      expect(JSON.parse(await notified.queues.policy(name))).toEqual(queuePolicy(queueArnOf(name), topic));
      const bodies = await notified.queues.receive(name);
      expect(bodies).toHaveLength(1);
      const message = JSON.parse(bodies[0] ?? '');
      expect(message).toEqual({
        type: 'config-changed',
        cluster: 'prod',
        timestamp: expect.any(String),
        version: 1,
      });
      expect(new Date(message.timestamp).toISOString()).toBe(message.timestamp);
      expect(Date.parse(message.timestamp)).toBeGreaterThanOrEqual(startedAt.getTime());
    }
  });

  it('tells the edges that its services name, which have queues of their own (L134)', async () => {
    const notified = await startNotified(['web-1']);
    const { operator } = notified;
    operator.store('nodes/edge-1/node.json', { nodeId: 'edge-1', role: 'edge' });
    const ingress = { domain: 'blog.example.com', port: 80, edge: 'edge-1' };
    await operator.reeve('deploy', notified.writeFile(['web-1'], { ingress }));
    expect(await notified.queues.names()).toEqual(['launch-pad-default-edge-1', 'launch-pad-default-web-1']);
    expect(await notified.queues.receive('launch-pad-default-edge-1')).toHaveLength(1);
  });

  it('writes cluster.json where there is none, whole, as launch-pad reads it', async () => {
    const notified = await startNotified(['web-1']);
    await notified.deploy(['web-1']);
    expect(JSON.parse(notified.operator.stored('clusters/default/cluster.json') ?? '')).toEqual({
      ...{ clusterId: 'default', defaultEdge: null, region: 'us-east-1', createdAt: expect.any(String) },
      ...{ createdBy: 'reeve deploy', autoscale: null, snsTopicArn: topicArnOf('default') },
    });
  });

  it('saves the topic in a bucket as in a directory', async () => {
    const notified = await startNotified(['web-1']);
    const { operator, cloud } = notified;
    const cluster = { store: 's3://state', region: cloudRegion, notify: 'sns' };
    operator.write('reeve.yaml', JSON.stringify({ cluster }));
    const at = (key: string): string => `${cloud.endpoint}/state/${key}`;
    const saved = '{"clusterId": "default", "snsTopicArn": null, "x": 1.0}';
    await fetch(at('nodes/web-1/node.json'), { method: 'PUT', body: '{"nodeId":"web-1","role":"app"}' });
    await fetch(at('clusters/default/cluster.json'), { method: 'PUT', body: saved });
    const end = await notified.deploy(['web-1']);
    expect([end.status, warningsOf(end)]).toEqual([0, []]);
    const text = await (await fetch(at('clusters/default/cluster.json'))).text();
    expect(text).toBe(saved.replace('null', `"${topicArnOf('default')}"`));
    expect(await notified.queues.receive('launch-pad-default-web-1')).toHaveLength(1);
  });

  it('lets no foreign message into a queue (L121)', async () => {
    const notified = await startNotified(['web-1']);
    await notified.deploy(['web-1']);
    const policy = await notified.queues.policy('launch-pad-default-web-1');
    const send = (topic: string, tls: string): boolean =>
      isAllowed(policy, {
        action: 'sqs:SendMessage',
        resource: queueArnOf('launch-pad-default-web-1'),
        principal: { service: 'sns.amazonaws.com' },
        context: { 'aws:SourceArn': topic, 'aws:SecureTransport': tls },
      });
    expect(send(topicArnOf('default'), 'true')).toBe(true);
    expect(send(topicArnOf('default'), 'false')).toBe(false);
    expect(send(topicArnOf('prod'), 'true')).toBe(false);
  });
});

describe('a further deploy', () => {
  it('changes nothing in the cloud, and asks once a node', async () => {
    const notified = await startNotified(['web-1', 'web-2']);
    await notified.deploy(['web-1', 'web-2']);
    notified.asked();
    const saved = notified.operator.stored('clusters/default/cluster.json');
    const end = await notified.deploy(['web-1', 'web-2']);
    expect([end.status, warningsOf(end)]).toEqual([0, []]);
    expect(notified.asked()).toEqual({
      ...{ GetTopicAttributes: 1, ListSubscriptionsByTopic: 1, ListQueues: 1 },
      ...{ GetQueueAttributes: 2, Publish: 1 },
    });
    expect(notified.operator.stored('clusters/default/cluster.json')).toBe(saved);
    expect(await notified.queues.receive('launch-pad-default-web-1')).toHaveLength(2);
  });

  it('that changes nothing tells nobody, nor does one with --no-notify or --dry-run', async () => {
    const notified = await startNotified(['web-1']);
    const file = notified.writeFile(['web-1']);
    await notified.operator.reeve('deploy', file);
    notified.asked();
    await notified.operator.reeve('deploy', file);
    await notified.deploy(['web-1'], '--dry-run');
    await notified.deploy(['web-1'], '--no-notify');
    expect(notified.asked()).toEqual({});
  });

  it.each([
    ['restart', ['restart', 'blog/web', '--yes']],
    ['rollback', ['rollback', 'blog/web']],
    ['deploy --remove', ['deploy', '--remove', 'blog', '--yes']],
  ])('by %s is told, too', async (_, words) => {
    const notified = await startNotified(['web-1']);
    await notified.deploy(['web-1']);
    await notified.deploy(['web-1']);
    const end = await notified.operator.reeve(...words);
    expect([end.status, warningsOf(end)]).toEqual([0, []]);
    expect(await notified.queues.receive('launch-pad-default-web-1')).toHaveLength(3);
  });

  it('brings back what somebody has changed or removed', async () => {
    const notified = await startNotified(['web-1', 'web-2']);
    const { sns, sqs } = notified;
    await notified.deploy(['web-1', 'web-2']);
    const open = { AttributeName: 'Policy', AttributeValue: '{"Statement":[]}' };
    await sns.send(new SetTopicAttributesCommand({ TopicArn: topicArnOf('default'), ...open }));
    const QueueUrl = await notified.queues.url('launch-pad-default-web-1');
    await sqs.send(new SetQueueAttributesCommand({ QueueUrl, Attributes: { Policy: '' } }));
    await sqs.send(
      new DeleteQueueCommand({ QueueUrl: await notified.queues.url('launch-pad-default-web-2') }),
    );
    const end = await notified.deploy(['web-1', 'web-2']);
    expect([end.status, warningsOf(end)]).toEqual([0, []]);
    const { Attributes } = await sns.send(new GetTopicAttributesCommand({ TopicArn: topicArnOf('default') }));
    expect(JSON.parse(Attributes?.['Policy'] ?? '')).toEqual(topicPolicy(topicArnOf('default')));
    for (const name of ['launch-pad-default-web-1', 'launch-pad-default-web-2']) {
      expect(JSON.parse(await notified.queues.policy(name))).toEqual(
        queuePolicy(queueArnOf(name), topicArnOf('default')),
      );
    }
    expect(await notified.queues.receive('launch-pad-default-web-2')).toHaveLength(1);
  });

  it('takes over the queue that launch-pad’s CLI has made, with whatever policy', async () => {
    const notified = await startNotified(['web-1']);
    const Attributes = { Policy: JSON.stringify({ Statement: [{ Sid: topicArnOf('default') }] }) };
    await notified.sqs.send(new CreateQueueCommand({ QueueName: 'launch-pad-default-web-1', Attributes }));
    const end = await notified.deploy(['web-1']);
    expect([end.status, warningsOf(end)]).toEqual([0, []]);
    expect(await notified.queues.receive('launch-pad-default-web-1')).toHaveLength(1);
  });

  it('makes a topic anew where the saved one is gone, and saves that', async () => {
    const notified = await startNotified(['web-1']);
    const elsewhere = 'arn:aws:sns:eu-west-1:123456789012:launch-pad-default';
    notified.operator.store('clusters/default/cluster.json', { snsTopicArn: elsewhere });
    const end = await notified.deploy(['web-1']);
    expect([end.status, warningsOf(end)]).toEqual([0, []]);
    const saved = JSON.parse(notified.operator.stored('clusters/default/cluster.json') ?? '');
    expect(saved).toEqual({ snsTopicArn: topicArnOf('default') });
  });
});
