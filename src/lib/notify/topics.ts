// The cluster's SNS topic, as far as a release needs it. The client is loaded here, and only where something is told.
import type { SNSClient } from '@aws-sdk/client-sns';
import { buildClientSettings, type CallLimit, callCloud, dropRetryAfter, notAnswered } from '../aws/call.ts';
import type { CloudPlace } from '../aws/settings.ts';
import { ReeveError } from '../errors.ts';

export type TopicService = {
  readonly sdk: typeof import('@aws-sdk/client-sns');
  readonly client: SNSClient;
  readonly region: string;
  /** Of each call. */
  readonly limit: CallLimit;
};

export async function openTopics(place: CloudPlace, limit: CallLimit): Promise<TopicService> {
  const sdk = await import('@aws-sdk/client-sns');
  const client = new sdk.SNSClient(buildClientSettings(place));
  client.middlewareStack.add(dropRetryAfter, { step: 'finalizeRequest', priority: 'low' });
  return { sdk, client, region: place.region, limit };
}

/** Answers with the topic's ARN, also where it is there already. */
export async function createTopic({ sdk, client, limit }: TopicService, name: string): Promise<string> {
  const command = new sdk.CreateTopicCommand({ Name: name });
  const action = `create topic ${name}`;
  const { TopicArn: arn } = await callCloud({ action, ...limit }, (abortSignal) =>
    client.send(command, { abortSignal }),
  );
  if (arn?.startsWith('arn:') === true && nameOf(arn) === name) return arn;
  throw notAnswered(action);
}

/** Undefined where there is no such topic, or one that no client of this region and account can have. */
export async function readTopicPolicy(
  { sdk, client, limit }: TopicService,
  arn: string,
): Promise<{ text: string | undefined } | undefined> {
  const command = new sdk.GetTopicAttributesCommand({ TopicArn: arn });
  try {
    const answer = await callCloud({ action: `read topic ${nameOf(arn)}`, ...limit }, (abortSignal) =>
      client.send(command, { abortSignal }),
    );
    return { text: answer.Attributes?.['Policy'] };
  } catch (error) {
    if (error instanceof ReeveError && /^(NotFound|InvalidParameter)/.test(error.code)) return undefined;
    throw error;
  }
}

export async function writeTopicPolicy(
  { sdk, client, limit }: TopicService,
  arn: string,
  policy: object,
): Promise<void> {
  const attribute = { AttributeName: 'Policy', AttributeValue: JSON.stringify(policy) };
  const command = new sdk.SetTopicAttributesCommand({ TopicArn: arn, ...attribute });
  await callCloud({ action: `set the policy of topic ${nameOf(arn)}`, ...limit }, (abortSignal) =>
    client.send(command, { abortSignal }),
  );
}

/** ARNs of the queues that are subscribed to the topic. */
export async function listSubscribedQueues(
  { sdk, client, limit }: TopicService,
  arn: string,
): Promise<Set<string>> {
  const queues = new Set<string>();
  let page: { NextToken?: string } = {};
  do {
    const command = new sdk.ListSubscriptionsByTopicCommand({ TopicArn: arn, ...page });
    const action = `list the subscriptions of topic ${nameOf(arn)}`;
    const answer = await callCloud({ action, ...limit }, (abortSignal) =>
      client.send(command, { abortSignal }),
    );
    for (const { Protocol, Endpoint = '' } of answer.Subscriptions ?? []) {
      if (Protocol === 'sqs') queues.add(Endpoint);
    }
    page = answer.NextToken ? { NextToken: answer.NextToken } : {};
  } while (page.NextToken !== undefined);
  return queues;
}

/** With raw delivery. A queue that is subscribed already stays so. */
export async function subscribeQueue(
  { sdk, client, limit }: TopicService,
  arn: string,
  queueArn: string,
): Promise<void> {
  const command = new sdk.SubscribeCommand({
    TopicArn: arn,
    Protocol: 'sqs',
    Endpoint: queueArn,
    Attributes: { RawMessageDelivery: 'true' },
  });
  await callCloud({ action: `subscribe queue ${nameOf(queueArn)}`, ...limit }, (abortSignal) =>
    client.send(command, { abortSignal }),
  );
}

export async function publishMessage(
  { sdk, client, limit }: TopicService,
  arn: string,
  message: string,
): Promise<void> {
  const command = new sdk.PublishCommand({ TopicArn: arn, Message: message });
  const action = `publish to topic ${nameOf(arn)}`;
  const { MessageId: id } = await callCloud({ action, ...limit }, (abortSignal) =>
    client.send(command, { abortSignal }),
  );
  if (id === undefined) throw notAnswered(action);
}

function nameOf(arn: string): string {
  return arn.split(':').at(-1) ?? arn;
}
