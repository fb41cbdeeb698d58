import { describe, expect, it } from 'vitest';
import {
  findOtherTopic,
  isSamePolicy,
  isTopicArn,
  queueArn,
  queueName,
  queuePolicy,
  queuePrefix,
  renderNotification,
  topicName,
  topicPolicy,
} from '../../../src/lib/cluster/notification.ts';
import { type Asking, isAllowed } from '../../support/policy.ts';

const topic = 'arn:aws:sns:eu-central-1:123456789012:launch-pad-prod';
const queue = 'arn:aws:sqs:eu-central-1:123456789012:launch-pad-prod-web-1';
const other = topic.replace('prod', 'test');

describe('names', () => {
  it('of topic and queues are launch-pad’s (L116, L120)', () => {
    expect(topicName('prod')).toBe('launch-pad-prod');
    expect(queuePrefix('prod')).toBe('launch-pad-prod-');
    expect(queueName('prod', 'web-1')).toBe('launch-pad-prod-web-1');
    expect(queueArn(topic, 'launch-pad-prod-web-1')).toBe(queue);
    expect(queueArn('arn:aws-cn:sns:cn-north-1:000000000000:launch-pad-x', 'q')).toBe(
      'arn:aws-cn:sqs:cn-north-1:000000000000:q',
    );
  });

  it('of a queue have 80 characters at most', () => {
    const longest = 'n'.repeat(80 - 'launch-pad-prod-'.length);
    expect(queueName('prod', longest)).toHaveLength(80);
    expect(() => queueName('prod', `${longest}n`)).toThrow(
      `cannot name the queue of node ${longest}n: "launch-pad-prod-${longest}n" has 81 characters, and SQS takes 80`,
    );
  });

  it.each([
    [topic, true],
    ['arn:aws-us-gov:sns:us-gov-west-1:000000000000:launch-pad-prod', true],
    [other, false],
    [queue, false],
    ['arn:aws:sns:eu-central-1:1234:launch-pad-prod', false],
    [null, false],
    [undefined, false],
  ])('of the topic: %s is prod’s: %s', (arn, expected) => {
    expect(isTopicArn(arn, 'prod')).toBe(expected);
  });
});

describe('the message', () => {
  it('is launch-pad’s, with its fields in order (L123, L124)', () => {
    expect(renderNotification('prod', new Date('2026-06-04T03:00:00Z'))).toBe(
      '{"type":"config-changed","cluster":"prod","timestamp":"2026-06-04T03:00:00.000Z","version":1}',
    );
  });
});

describe('policies', () => {
  it('are these', async () => {
    const text = JSON.stringify({ topic: topicPolicy(topic), queue: queuePolicy(queue, topic) }, null, 2);
    await expect(`${text}\n`).toMatchFileSnapshot('../../fixtures/golden/notification-policies.json');
  });

  const publish = (principal: Asking['principal']): boolean =>
    isAllowed(JSON.stringify(topicPolicy(topic)), {
      ...{ action: 'sns:Publish', resource: topic, principal },
      context: { 'aws:SecureTransport': 'true' },
    });

  it('of the topic let only the own account publish (L118)', () => {
    expect(publish({ account: '123456789012' })).toBe(true);
    expect(publish({ account: '999999999999' })).toBe(false);
    expect(publish('anybody')).toBe(false);
  });

  const send = (context: Record<string, string>, principal: Asking['principal'] = sns): boolean =>
    isAllowed(JSON.stringify(queuePolicy(queue, topic)), {
      ...{ action: 'sqs:SendMessage', resource: queue, principal, context },
    });
  const sns = { service: 'sns.amazonaws.com' };

  it('of a queue let only the cluster’s topic send, and only over TLS (L121)', () => {
    expect(send({ 'aws:SourceArn': topic, 'aws:SecureTransport': 'true' })).toBe(true);
    expect(send({ 'aws:SourceArn': topic, 'aws:SecureTransport': 'false' })).toBe(false);
    expect(send({ 'aws:SourceArn': other, 'aws:SecureTransport': 'true' })).toBe(false);
    expect(send({ 'aws:SecureTransport': 'true' })).toBe(false);
    expect(send({ 'aws:SourceArn': topic, 'aws:SecureTransport': 'true' }, 'anybody')).toBe(false);
  });

  it('are the same in another order and spelling, and not with other words', () => {
    const policy = queuePolicy(queue, topic);
    const respelt = JSON.stringify({
      Statement: policy.Statement.map(({ Action, Condition, Principal, ...rest }) => ({
        Principal,
        Condition,
        Action: [Action],
        ...rest,
      })),
      Version: policy.Version,
    });
    expect(isSamePolicy(respelt, policy)).toBe(true);
    expect(isSamePolicy(JSON.stringify(policy), policy)).toBe(true);
    for (const raw of [undefined, '', '{', respelt.replace('Deny', 'Allow'), respelt.replace(topic, other)]) {
      expect(isSamePolicy(raw, policy)).toBe(false);
    }
  });

  it('tell that a queue is another cluster’s, and no other cluster’s in another account', () => {
    expect(findOtherTopic(JSON.stringify(queuePolicy(queue, other)), topic)).toBe(other);
    const moved = topic.replace('123456789012', '999999999999');
    expect(findOtherTopic(JSON.stringify(queuePolicy(queue, moved)), topic)).toBeUndefined();
    expect(findOtherTopic(undefined, topic)).toBeUndefined();
  });
});
