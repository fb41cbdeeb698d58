// A queue for each node that is to hear of changes: only the cluster's topic sends to it, and it is subscribed. What is there
// is found by two lists, so that a release to a fleet that has it all changes nothing and asks once a node.
import { isMissingQueue } from '../aws/missing-queue.ts';
import { mapBounded } from '../bounded.ts';
import {
  findOtherTopic,
  isSamePolicy,
  type Policy,
  queueArn,
  queueName,
  queuePolicy,
  queuePrefix,
} from '../cluster/notification.ts';
import { describeError, StepError } from '../errors.ts';
import {
  createQueue,
  findQueue,
  listQueues,
  type QueueService,
  readQueuePolicy,
  writeQueuePolicy,
} from './queues.ts';
import type { Stage } from './stage.ts';
import { listSubscribedQueues, subscribeQueue, type TopicService } from './topics.ts';

/** Requests under way at once. */
const parallel = 50;

export type QueuePlace = {
  clusterId: string;
  topicArn: string;
  topics: TopicService;
  queues: QueueService;
  stage: Stage;
};

/** One sentence where some queues are not as they should be. Throws where nothing can be told of any. */
export async function ensureQueues(place: QueuePlace, nodes: readonly string[]): Promise<string[]> {
  const [urls, subscribed] = await Promise.all([
    listQueues(place.queues, queuePrefix(place.clusterId)),
    listSubscribedQueues(place.topics, place.topicArn),
  ]);
  const results = await mapBounded(nodes, parallel, async (node): Promise<string | undefined> => {
    if (place.stage.end.aborted) return `cannot look at queue of ${node}: no time is left`;
    try {
      const name = queueName(place.clusterId, node);
      await ensureQueue(place, name, urls.get(name));
      const arn = queueArn(place.topicArn, name);
      if (!subscribed.has(arn)) await subscribeQueue(place.topics, place.topicArn, arn);
      return undefined;
    } catch (error) {
      return describeError(error);
    }
  });
  const failures = results.filter((failure) => failure !== undefined);
  const [first] = failures;
  if (first === undefined) return [];
  return [failures.length === 1 ? first : `${first} (and ${failures.length - 1} more of ${nodes.length})`];
}

async function ensureQueue(place: QueuePlace, name: string, listed: string | undefined): Promise<void> {
  const { queues, topicArn } = place;
  const wanted = queuePolicy(queueArn(topicArn, name), topicArn);
  if (listed !== undefined && (await guardQueue(place, { name, url: listed }, wanted))) return;
  const created = await createQueue(queues, name, wanted);
  if (created === undefined) await guardQueue(place, { name, url: await findQueue(queues, name) }, wanted);
}

/** False where the queue has gone, which a list shows a while later. Throws StepError for another cluster's. */
async function guardQueue(
  { queues, topicArn }: QueuePlace,
  { name, url }: { name: string; url: string },
  wanted: Policy,
): Promise<boolean> {
  try {
    const policy = await readQueuePolicy(queues, url);
    if (isSamePolicy(policy, wanted)) return true;
    const other = findOtherTopic(policy, topicArn);
    if (other !== undefined) throw new StepError(`cannot use queue ${name}: it is for topic ${other}`);
    await writeQueuePolicy(queues, url, wanted);
    return true;
  } catch (error) {
    if (isMissingQueue(error)) return false;
    throw error;
  }
}
