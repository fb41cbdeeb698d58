// A cluster whose deploys tell their nodes over SNS and SQS: an operator, the services behind a proxy, and what is in them.
import { SNSClient, type SNSClientConfig } from '@aws-sdk/client-sns';
import {
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  ListQueuesCommand,
  ReceiveMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { onTestFinished } from './after-test.ts';
import { type Cloud, cloudRegion, startCloud } from './cloud.ts';
import { type Fault, type FaultyProxy, startFaultyProxy } from './faulty-proxy.ts';
import { createOperator, type Operator } from './operator.ts';
import type { ProgramEnd } from './programs.ts';

export type Notified = {
  readonly cloud: Cloud;
  readonly proxy: FaultyProxy;
  readonly operator: Operator;
  /** For nodes, to reach the services through the proxy. */
  readonly env: Readonly<Record<string, string>>;
  readonly sns: SNSClient;
  readonly sqs: SQSClient;
  /** Actions asked for since the last look, by how often. */
  asked(): Record<string, number>;
  /** A file with one service on all of the nodes; each has another image. */
  writeFile(nodes: readonly string[], more?: object): string;
  /** Of such a file. */
  deploy(nodes: readonly string[], ...flags: string[]): Promise<ProgramEnd>;
  readonly queues: QueueLook;
};

export type QueueLook = {
  names(): Promise<string[]>;
  url(name: string): Promise<string>;
  policy(name: string): Promise<string>;
  /** Bodies of ten at most; received, they are hidden for a while. */
  receive(name: string): Promise<string[]>;
  /** How many are in it, and how many of them are received and not deleted. */
  messages(name: string): Promise<{ all: number; hidden: number }>;
  delete(name: string): Promise<void>;
};

const account = '000000000000';

export function topicArnOf(cluster: string): string {
  return `arn:aws:sns:${cloudRegion}:${account}:launch-pad-${cluster}`;
}

export function queueArnOf(name: string): string {
  return `arn:aws:sqs:${cloudRegion}:${account}:${name}`;
}

export function warningsOf({ stderr }: ProgramEnd): string[] {
  return stderr.split('\n').filter((line) => line.startsWith('warning: '));
}

let images = 0;

/** The clients go past the proxy. */
export async function startNotified(
  nodes: readonly string[],
  { clusterId = 'default' }: { clusterId?: string } = {},
): Promise<Notified> {
  const cloud = await startCloud();
  const proxy = await startFaultyProxy(cloud.endpoint);
  const operator = createOperator(nodes, { clusterId });
  const cluster = { clusterId, store: `file://${operator.root}/store`, region: cloudRegion, notify: 'sns' };
  operator.write('reeve.yaml', JSON.stringify({ cluster }));
  const env = { ...cloud.env, AWS_ENDPOINT_URL: proxy.endpoint };
  Object.assign(operator.environment, env);
  const asked = (): Record<string, number> => {
    const counts: Record<string, number> = {};
    for (const { action = '?' } of proxy.seen.splice(0)) counts[action] = (counts[action] ?? 0) + 1;
    return counts;
  };
  const settings = clientSettings(cloud.endpoint);
  const [sns, sqs] = [new SNSClient(settings), new SQSClient(settings)];
  onTestFinished(() => {
    sns.destroy();
    sqs.destroy();
  });
  const writeFile: Notified['writeFile'] = (names, more = {}) => {
    images += 1;
    const service = { project: 'blog', service: 'web', image: `img:${images}`, nodes: names, ...more };
    return operator.write('blog.yaml', JSON.stringify({ services: [{ cpu: 512, memory: 256, ...service }] }));
  };
  return {
    ...{ cloud, proxy, operator, env, sns, sqs, asked, writeFile },
    deploy: (names, ...flags) => operator.reeve('deploy', writeFile(names), ...flags),
    queues: lookInto(sqs),
  };
}

function lookInto(sqs: SQSClient): QueueLook {
  const url = async (name: string): Promise<string> => {
    const { QueueUrl = '' } = await sqs.send(new GetQueueUrlCommand({ QueueName: name }));
    return QueueUrl;
  };
  return {
    url,
    names: async () => {
      const { QueueUrls = [] } = await sqs.send(new ListQueuesCommand({}));
      return QueueUrls.map((one) => one.slice(one.lastIndexOf('/') + 1)).sort();
    },
    policy: async (name) => {
      const asking = { QueueUrl: await url(name), AttributeNames: ['Policy' as const] };
      return (await sqs.send(new GetQueueAttributesCommand(asking))).Attributes?.Policy ?? '';
    },
    receive: async (name) => {
      const asking = { QueueUrl: await url(name), MaxNumberOfMessages: 10, WaitTimeSeconds: 0 };
      const { Messages = [] } = await sqs.send(new ReceiveMessageCommand(asking));
      return Messages.map(({ Body = '' }) => Body);
    },
    messages: async (name) => {
      const names = ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible'] as const;
      const asking = { QueueUrl: await url(name), AttributeNames: [...names] };
      const { Attributes = {} } = await sqs.send(new GetQueueAttributesCommand(asking));
      const [visible = 0, hidden = 0] = names.map((one) => Number(Attributes[one]));
      return { all: visible + hidden, hidden };
    },
    delete: async (name) => {
      await sqs.send(new DeleteQueueCommand({ QueueUrl: await url(name) }));
    },
  };
}

function clientSettings(endpoint: string): SNSClientConfig {
  return { endpoint, region: cloudRegion, credentials: { accessKeyId: 'test', secretAccessKey: 'test' } };
}

/** As SNS says it. */
export function refusedBySns(status: number, code: string, message = 'of the test'): Fault {
  const body = `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`;
  return { kind: 'answer', status, headers: { 'content-type': 'text/xml' }, body };
}

/** As SQS says it. */
export function refusedBySqs(status: number, code: string, message = 'of the test'): Fault {
  const headers = { 'content-type': 'application/x-amz-json-1.0', 'x-amzn-query-error': `${code};Sender` };
  return {
    kind: 'answer',
    status,
    headers,
    body: JSON.stringify({ __type: `com.amazonaws.sqs#${code}`, message }),
  };
}

/** A fault for every request of that action; of one service, where it is `sns` or `sqs`. */
export function failing(what: string, fault: Fault): FaultyProxy['fault'] {
  return ({ action = '', headers }) => {
    const service = headers['x-amz-target'] === undefined ? 'sns' : 'sqs';
    return action === what || service === what ? fault : undefined;
  };
}
