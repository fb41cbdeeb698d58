// Tells the nodes of a release that there is something new: topic, queues and subscriptions where they are missing, then one
// message for the whole cluster. Best effort within ten seconds: what goes wrong is one warning, as ticks find the change, too.
import { cloudPlaceOf } from '../aws/settings.ts';
import { renderNotification } from '../cluster/notification.ts';
import type { ClusterConfig } from '../config/config.ts';
import type { BaseContext } from '../context.ts';
import { describeError } from '../errors.ts';
import { openStore } from '../store/open.ts';
import { ensureQueues } from './ensure-queues.ts';
import { ensureTopic } from './ensure-topic.ts';
import { openQueues } from './queues.ts';
import { startStage } from './stage.ts';
import { openTopics, publishMessage } from './topics.ts';

/** Together with what is loaded, and with a pause of the SDK that no signal ends, ten seconds at most. */
const setUpMs = 6_000;
const publishMs = 3_000;

export type Notice = {
  cluster: Pick<ClusterConfig, 'clusterId' | 'store' | 'region' | 'endpoint'>;
  /** Ids of the nodes and edges that are to hear of it. */
  nodes: readonly string[];
};

type Ctx = Pick<BaseContext, 'clock' | 'log' | 'signal'>;

export async function notifyNodes(ctx: Ctx, notice: Notice): Promise<void> {
  const failures: string[] = [];
  const collect = (error: unknown): void => void failures.push(describeError(error));
  await setUpAndPublish(ctx, notice, failures).catch(collect);
  if (failures.length === 0) return;
  ctx.log.warning(`nodes may find the change at their next tick only: ${failures.join('; ')}`);
}

/** Throws where nothing can be published. */
async function setUpAndPublish(ctx: Ctx, { cluster, nodes }: Notice, failures: string[]): Promise<void> {
  const place = cloudPlaceOf(cluster);
  const { clusterId } = cluster;
  const stage = startStage(setUpMs, ctx.signal);
  // One of its own, so that what is still under way in it ends with the stage, and nobody waits for it.
  const store = await openStore(cluster, { signal: stage.end });
  const [topics, queues] = await Promise.all([openTopics(place, stage), openQueues(place, stage)]);
  try {
    const topicArn = await ensureTopic({ cluster, store, topics, stage, now: ctx.clock.now() }, failures);
    await ensureQueues({ clusterId, topicArn, topics, queues, stage }, nodes).then(
      (some) => void failures.push(...some),
      (error: unknown) => void failures.push(describeError(error)),
    );
    const publishing = { ...topics, limit: startStage(publishMs, ctx.signal) };
    await publishMessage(publishing, topicArn, renderNotification(clusterId, ctx.clock.now()));
  } finally {
    topics.client.destroy();
    queues.client.destroy();
  }
}
