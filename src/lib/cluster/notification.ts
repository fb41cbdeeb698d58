// launch-pad's deploy notifications: what topic and queues are called, who may do what with them, and the message. Pure.
import { InputError } from '../errors.ts';
import { canonicalJson } from './canonical.ts';

export function topicName(clusterId: string): string {
  return `launch-pad-${clusterId}`;
}

const maxQueueName = 80;

/** Of a node, or of an edge under its own id. Throws InputError for a name that SQS would not take. */
export function queueName(clusterId: string, nodeId: string): string {
  const name = `${queuePrefix(clusterId)}${nodeId}`;
  if (name.length <= maxQueueName) return name;
  throw new InputError(
    `cannot name the queue of node ${nodeId}: "${name}" has ${name.length} characters, and SQS takes ${maxQueueName}`,
  );
}

/** All queues of the cluster begin with it. */
export function queuePrefix(clusterId: string): string {
  return `${topicName(clusterId)}-`;
}

/** Queues are where their topic is: same partition, region and account. */
export function queueArn(topicArn: string, name: string): string {
  const { partition, region, account } = splitArn(topicArn);
  return `arn:${partition}:sqs:${region}:${account}:${name}`;
}

/** Whether it is the cluster's own topic, in whichever account and region. */
export function isTopicArn(value: unknown, clusterId: string): value is string {
  const match = /^arn:[a-z-]+:sns:[a-z0-9-]+:\d{12}:([A-Za-z0-9_-]+)$/.exec(String(value));
  return match?.[1] === topicName(clusterId);
}

export function isInRegion(arn: string, region: string): boolean {
  return splitArn(arn).region === region;
}

function splitArn(arn: string): { partition: string; region: string; account: string } {
  const [, partition = '', , region = '', account = ''] = arn.split(':');
  return { partition, region, account };
}

type PolicyStatement = {
  Sid: string;
  Effect: 'Allow' | 'Deny';
  Principal: '*' | Readonly<Record<string, string>>;
  Action: string;
  Resource: string;
  Condition?: Readonly<Record<string, Readonly<Record<string, string>>>>;
};

export type Policy = { Version: '2012-10-17'; Statement: readonly PolicyStatement[] };

/** The account decides by its own IAM who publishes; nobody else does. */
export function topicPolicy(topicArn: string): Policy {
  const { partition, account } = splitArn(topicArn);
  return {
    Version: '2012-10-17',
    Statement: [
      {
        Sid: 'PublishByOwnAccount',
        Effect: 'Allow',
        Principal: { AWS: `arn:${partition}:iam::${account}:root` },
        Action: 'sns:Publish',
        Resource: topicArn,
      },
    ],
  };
}

/** Only the cluster's topic sends, and nobody does anything without TLS. */
export function queuePolicy(arn: string, topicArn: string): Policy {
  return {
    Version: '2012-10-17',
    Statement: [
      {
        Sid: 'SendByClusterTopic',
        Effect: 'Allow',
        Principal: { Service: 'sns.amazonaws.com' },
        Action: 'sqs:SendMessage',
        Resource: arn,
        Condition: { ArnEquals: { 'aws:SourceArn': topicArn } },
      },
      {
        Sid: 'DenyWithoutTls',
        Effect: 'Deny',
        Principal: '*',
        Action: 'sqs:*',
        Resource: arn,
        Condition: { Bool: { 'aws:SecureTransport': 'false' } },
      },
    ],
  };
}

/** As the service gives it back: in another order and spelling, perhaps. */
export function isSamePolicy(raw: string | undefined, policy: Policy): boolean {
  if (raw === undefined) return false;
  try {
    return canonicalJson(unwrap(JSON.parse(raw))) === canonicalJson(unwrap(policy));
  } catch {
    return false;
  }
}

/** A list of one and its element say the same in a policy. */
function unwrap(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 1 ? unwrap(value[0]) : value.map(unwrap);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, unwrap(inner)]));
}

/** Another cluster's topic that the queue takes messages from: two clusters can have one name for two nodes' queues. */
export function findOtherTopic(raw: string | undefined, topicArn: string): string | undefined {
  const nameOf = (arn: string): string | undefined => arn.split(':').at(-1);
  const named = raw?.match(/arn:[a-z-]+:sns:[a-z0-9-]+:\d{12}:launch-pad-[A-Za-z0-9_-]+/g) ?? [];
  return named.find((arn) => nameOf(arn) !== nameOf(topicArn));
}

export function renderNotification(clusterId: string, now: Date): string {
  return JSON.stringify({
    type: 'config-changed',
    cluster: clusterId,
    timestamp: now.toISOString(),
    version: 1,
  });
}
