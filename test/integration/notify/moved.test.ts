// A topic that cluster.json remembers from another region or account, as after a move: no client here can use it.
import { describe, expect, it } from 'vitest';
import type { Fault } from '../../support/faulty-proxy.ts';
import {
  type Notified,
  refusedBySns,
  startNotified,
  topicArnOf,
  warningsOf,
} from '../../support/notified.ts';

const key = 'clusters/default/cluster.json';
const queue = 'launch-pad-default-web-1';
const ofAccount = 'arn:aws:sns:us-east-1:123456789012:launch-pad-default';
const ofRegion = 'arn:aws:sns:eu-west-1:000000000000:launch-pad-default';

/** As somebody else has written it, with more in it. */
const documentWith = (arn: string): string =>
  `{ "clusterId": "default",   "snsTopicArn": "${arn}", "theirs": 1.0 }\n`;

async function startMoved(arn: string, fault?: Fault): Promise<Notified> {
  const notified = await startNotified(['web-1']);
  notified.operator.write(`store/${key}`, documentWith(arn));
  const about = `TopicArn=${encodeURIComponent(arn)}`;
  // Like SNS, and unlike the emulator, it says of such a topic what it says of somebody else's.
  notified.proxy.fault = ({ question }) => (question?.includes(about) ? fault : undefined);
  return notified;
}

const refused = refusedBySns(403, 'AuthorizationError');

describe('a saved topic', () => {
  it.each([
    ['another region, which is not even asked for', ofRegion, refused, { GetTopicAttributes: 1 }],
    ['another account, whose topic refuses', ofAccount, refused, { GetTopicAttributes: 2, CreateTopic: 1 }],
    [
      'another account, of which the service says that it is no topic',
      ofAccount,
      refusedBySns(400, 'InvalidParameter'),
      { GetTopicAttributes: 2, CreateTopic: 1 },
    ],
    ['an account where it is gone', ofAccount, refusedBySns(404, 'NotFound'), { CreateTopic: 1 }],
  ])(
    'of %s, is replaced by the cluster’s own here, and that is saved (L117, L119)',
    async (_, arn, fault, asked) => {
      const notified = await startMoved(arn, fault);
      const end = await notified.deploy(['web-1']);
      expect([end.status, warningsOf(end)]).toEqual([0, []]);
      expect(notified.asked()).toMatchObject({ ...asked, Publish: 1 });
      expect(notified.operator.stored(key)).toBe(documentWith(topicArnOf('default')));
      expect(await notified.queues.receive(queue)).toHaveLength(1);
      // From then on it is as any other.
      await notified.deploy(['web-1']);
      expect(notified.asked()).toEqual({
        ...{ GetTopicAttributes: 1, ListSubscriptionsByTopic: 1, ListQueues: 1 },
        ...{ GetQueueAttributes: 1, Publish: 1 },
      });
    },
  );

  it.each([
    ['looked at', ['GetTopicAttributes']],
    ['looked at or made', ['GetTopicAttributes', 'CreateTopic']],
  ])('of our own that may not be %s is told all the same, with one warning', async (_, actions) => {
    const notified = await startNotified(['web-1']);
    await notified.deploy(['web-1']);
    const saved = notified.operator.stored(key);
    notified.proxy.fault = ({ action = '' }) => (actions.includes(action) ? refused : undefined);
    const end = await notified.deploy(['web-1']);
    expect([end.status, warningsOf(end)]).toEqual([
      0,
      [
        'warning: nodes may find the change at their next tick only: ' +
          'cannot read topic launch-pad-default: 403 AuthorizationErrorException: of the test',
      ],
    ]);
    expect(notified.operator.stored(key)).toBe(saved);
    expect(await notified.queues.receive(queue)).toHaveLength(2);
  });
});
