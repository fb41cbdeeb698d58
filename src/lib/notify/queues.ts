// The SQS queues of a cluster's nodes, as far as a release needs them.
import type { SQSClient } from '@aws-sdk/client-sqs';
import { buildClientSettings, type CallLimit, callCloud, dropRetryAfter, notAnswered } from '../aws/call.ts';
import type { CloudPlace } from '../aws/settings.ts';
import { readShape } from '../aws/shape.ts';
import { ReeveError } from '../errors.ts';

export type QueueService = {
  readonly sdk: typeof import('@aws-sdk/client-sqs');
  readonly client: SQSClient;
  readonly limit: CallLimit;
};

export async function openQueues(place: CloudPlace, limit: CallLimit): Promise<QueueService> {
  const sdk = await import('@aws-sdk/client-sqs');
  const client = new sdk.SQSClient(buildClientSettings(place));
  client.middlewareStack.add(dropRetryAfter, { step: 'finalizeRequest', priority: 'low' });
  return { sdk, client, limit };
}

/** What one call of ListQueues answers with. */
const queuesPerPage = 1000;

/** URLs by name. */
export async function listQueues(
  { sdk, client, limit }: QueueService,
  prefix: string,
): Promise<Map<string, string>> {
  const urls = new Map<string, string>();
  let page: { NextToken?: string } = {};
  do {
    const command = new sdk.ListQueuesCommand({
      QueueNamePrefix: prefix,
      MaxResults: queuesPerPage,
      ...page,
    });
    const action = `list queues ${prefix}*`;
    const answer = await callCloud({ action, ...limit }, (abortSignal) =>
      client.send(command, { abortSignal }),
    );
    readShape(action, () => {
      for (const url of answer.QueueUrls ?? []) urls.set(nameOf(url), url);
    });
    page = answer.NextToken ? { NextToken: answer.NextToken } : {};
  } while (page.NextToken !== undefined);
  return urls;
}

/** Undefined where a queue of that name is there with something else about it. */
export async function createQueue(
  { sdk, client, limit }: QueueService,
  name: string,
  policy: object,
): Promise<string | undefined> {
  const command = new sdk.CreateQueueCommand({
    QueueName: name,
    Attributes: { Policy: JSON.stringify(policy) },
  });
  try {
    const action = `create queue ${name}`;
    const { QueueUrl: url } = await callCloud({ action, ...limit }, (abortSignal) =>
      client.send(command, { abortSignal }),
    );
    if (url === undefined) throw notAnswered(action);
    return url;
  } catch (error) {
    if (error instanceof ReeveError && /QueueNameExists|QueueAlreadyExists/.test(error.code))
      return undefined;
    throw error;
  }
}

export async function findQueue({ sdk, client, limit }: QueueService, name: string): Promise<string> {
  const command = new sdk.GetQueueUrlCommand({ QueueName: name });
  const action = `find queue ${name}`;
  const { QueueUrl: url } = await callCloud({ action, ...limit }, (abortSignal) =>
    client.send(command, { abortSignal }),
  );
  if (url === undefined) throw notAnswered(action);
  return url;
}

export async function readQueuePolicy(
  { sdk, client, limit }: QueueService,
  url: string,
): Promise<string | undefined> {
  const command = new sdk.GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['Policy'] });
  const { Attributes } = await callCloud({ action: `read queue ${nameOf(url)}`, ...limit }, (abortSignal) =>
    client.send(command, { abortSignal }),
  );
  return Attributes?.Policy;
}

export async function writeQueuePolicy(
  { sdk, client, limit }: QueueService,
  url: string,
  policy: object,
): Promise<void> {
  const command = new sdk.SetQueueAttributesCommand({
    QueueUrl: url,
    Attributes: { Policy: JSON.stringify(policy) },
  });
  await callCloud({ action: `set the policy of queue ${nameOf(url)}`, ...limit }, (abortSignal) =>
    client.send(command, { abortSignal }),
  );
}

function nameOf(url: string): string {
  return url.slice(url.lastIndexOf('/') + 1);
}
