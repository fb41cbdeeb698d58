// This node's own queues in SQS, as far as a listener needs them and its role lets it: find, receive, delete. Nothing is tried
// again in here: whoever listens does that, and tells of it.
import type { SQSClient } from '@aws-sdk/client-sqs';
import { buildClientSettings, callCloud } from '../aws/call.ts';
import { isMissingQueue } from '../aws/missing-queue.ts';
import type { CloudPlace } from '../aws/settings.ts';
import { readShape } from '../aws/shape.ts';
import { UnavailableError } from '../errors.ts';

/**
 * For how long what has been received is not given again: time to delete it in. No longer, since a poll that was cut off may
 * have taken a message along.
 */
export const hiddenSeconds = 10;

/** What one call takes and gives. */
export const batchSize = 10;

export type Queues = {
  readonly sdk: typeof import('@aws-sdk/client-sqs');
  readonly client: SQSClient;
  readonly signal: AbortSignal;
  /** How long an answer may take beyond the wait that was asked for. */
  readonly deadlineMs: number;
};

/** The longest wait that SQS knows. */
const maxPollMs = 20_000;

export async function openQueues(
  place: CloudPlace,
  limit: { signal: AbortSignal; deadlineMs: number },
): Promise<Queues> {
  const sdk = await import('@aws-sdk/client-sqs');
  const settings = buildClientSettings(place);
  const requestTimeout = maxPollMs + limit.deadlineMs;
  const client = new sdk.SQSClient({
    ...settings,
    maxAttempts: 1,
    requestHandler: { ...settings.requestHandler, requestTimeout },
    // Nobody reads the messages.
    md5: false,
  });
  return { sdk, client, ...limit };
}

/** Undefined where there is no such queue. */
export async function findQueue(
  { sdk, client, signal, deadlineMs }: Queues,
  name: string,
): Promise<string | undefined> {
  const command = new sdk.GetQueueUrlCommand({ QueueName: name });
  try {
    const answer = await callCloud({ action: `find queue ${name}`, signal, deadlineMs }, (abortSignal) =>
      client.send(command, { abortSignal }),
    );
    return answer.QueueUrl;
  } catch (error) {
    if (isMissingQueue(error)) return undefined;
    throw error;
  }
}

export type Queue = { name: string; url: string };

/** Receipts of the messages that are there, or that come within the wait. */
export async function receiveMessages(
  { sdk, client, signal, deadlineMs }: Queues,
  { name, url }: Queue,
  waitSeconds: number,
): Promise<string[]> {
  const command = new sdk.ReceiveMessageCommand({
    QueueUrl: url,
    MaxNumberOfMessages: batchSize,
    WaitTimeSeconds: waitSeconds,
    VisibilityTimeout: hiddenSeconds,
  });
  const limit = { signal, deadlineMs: waitSeconds * 1000 + deadlineMs };
  const action = `receive from queue ${name}`;
  const answer = await callCloud({ action, ...limit }, (abortSignal) =>
    client.send(command, { abortSignal }),
  );
  return readShape(action, () =>
    (answer.Messages ?? []).flatMap(({ ReceiptHandle: receipt }) =>
      typeof receipt === 'string' ? [receipt] : [],
    ),
  );
}

/** Ten at most, `leftMs` for them at most. Not ended by a signal: what has been received is settled first. */
export async function deleteMessages(
  { sdk, client, deadlineMs }: Queues,
  { name, url }: Queue,
  { receipts, leftMs }: { receipts: readonly string[]; leftMs: number },
): Promise<void> {
  const entries = receipts.map((receipt, index) => ({ Id: String(index), ReceiptHandle: receipt }));
  const command = new sdk.DeleteMessageBatchCommand({ QueueUrl: url, Entries: entries });
  const action = `delete messages of queue ${name}`;
  const answer = await callCloud({ action, deadlineMs: Math.min(deadlineMs, leftMs) }, (abortSignal) =>
    client.send(command, { abortSignal }),
  );
  const [first] = answer.Failed ?? [];
  if (first === undefined) return;
  throw new UnavailableError(
    `cannot ${action}: ${first.Code}: ${first.Message ?? ''} (${answer.Failed?.length} of ${receipts.length})`,
  );
}
