// The cluster's topic: made by the first release, guarded by its policy, remembered in cluster.json.
import { isSamePolicy, topicName, topicPolicy } from '../cluster/notification.ts';
import type { ClusterConfig } from '../config/config.ts';
import { describeError } from '../errors.ts';
import type { Store } from '../store/store.ts';
import { readTopicArn, saveTopicArn } from './cluster-file.ts';
import { awaitInStage, type Stage } from './stage.ts';
import { createTopic, readTopicPolicy, type TopicService, writeTopicPolicy } from './topics.ts';

export type TopicPlace = {
  cluster: Pick<ClusterConfig, 'clusterId' | 'region'>;
  store: Store;
  topics: TopicService;
  stage: Stage;
  now: Date;
};

/** Throws where there is no topic to publish to; what else goes wrong is added to the failures. */
export async function ensureTopic(place: TopicPlace, failures: string[]): Promise<string> {
  const { cluster, store, topics, stage, now } = place;
  const collect = (error: unknown): undefined => void failures.push(describeError(error));
  const reading = readTopicArn(store, cluster.clusterId);
  const known = await awaitInStage(stage, 'read cluster.json', reading).catch(collect);
  if (known !== undefined) {
    const isThere = await guardTopic(topics, known).catch(collect);
    if (isThere !== false) return known;
  }
  const arn = await createTopic(topics, topicName(cluster.clusterId));
  await guardTopic(topics, arn).catch(collect);
  const saving = saveTopicArn(store, cluster, { arn, now });
  await awaitInStage(stage, 'write cluster.json', saving).catch(collect);
  return arn;
}

/** Nobody else may publish to it. False where there is no such topic. */
async function guardTopic(topics: TopicService, arn: string): Promise<boolean> {
  const policy = await readTopicPolicy(topics, arn);
  if (policy === undefined) return false;
  const wanted = topicPolicy(arn);
  if (!isSamePolicy(policy.text, wanted)) await writeTopicPolicy(topics, arn, wanted);
  return true;
}
