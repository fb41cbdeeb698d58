// The cluster's topic: made by the first release, guarded by its policy, remembered in cluster.json. A saved one of another
// region or account, as after a move, is none: the cluster gets one here, and that is saved.
import { isInRegion, isSamePolicy, topicName, topicPolicy } from '../cluster/notification.ts';
import type { ClusterConfig } from '../config/config.ts';
import { describeError, ReeveError } from '../errors.ts';
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

type Collect = (error: unknown) => void;

/** Throws where there is no topic to publish to; what else goes wrong is added to the failures. */
export async function ensureTopic(place: TopicPlace, failures: string[]): Promise<string> {
  const { cluster, store, topics, stage, now } = place;
  const collect: Collect = (error) => void failures.push(describeError(error));
  const reading = (): Promise<string | undefined> => readTopicArn(store, cluster.clusterId);
  const saved = await awaitInStage(stage, 'read cluster.json', reading).catch(collect);
  // One of another region is not even asked for: no client of this region reaches it.
  const known = typeof saved === 'string' && isInRegion(saved, topics.region) ? saved : undefined;
  const arn = known === undefined ? undefined : await checkTopic(place, known, collect);
  if (arn === known && known !== undefined) return known;
  const made = arn ?? (await createTopic(topics, topicName(cluster.clusterId)));
  await guardTopic(topics, made).catch(collect);
  const saving = (): Promise<void> => saveTopicArn(store, cluster, { arn: made, now });
  await awaitInStage(stage, 'write cluster.json', saving).catch(collect);
  return made;
}

/** The same where it is ours, another one where it is another account's, undefined where there is none. */
async function checkTopic(
  { cluster, topics }: TopicPlace,
  known: string,
  collect: Collect,
): Promise<string | undefined> {
  try {
    return (await guardTopic(topics, known)) ? known : undefined;
  } catch (error) {
    const isDenied = error instanceof ReeveError && error.code === 'denied';
    // Another account's topic refuses as our own does where a right is lacking. Which it is, tells the one of that name here.
    const own = isDenied ? await createTopic(topics, topicName(cluster.clusterId)).catch(() => known) : known;
    if (own === known) collect(error);
    return own;
  }
}

/** Nobody else may publish to it. False where there is no such topic. */
async function guardTopic(topics: TopicService, arn: string): Promise<boolean> {
  const policy = await readTopicPolicy(topics, arn);
  if (policy === undefined) return false;
  const wanted = topicPolicy(arn);
  if (!isSamePolicy(policy.text, wanted)) await writeTopicPolicy(topics, arn, wanted);
  return true;
}
