// The topic's ARN in cluster.json, which belongs to the cluster: everything else in it stays as it is.
import { describeCluster, replaceTopicArn } from '../cluster/cluster-document.ts';
import { clusterKey } from '../cluster/keys.ts';
import { isTopicArn } from '../cluster/notification.ts';
import { renderDocument } from '../cluster/wire.ts';
import { StepError } from '../errors.ts';
import { isRecord } from '../state/shape.ts';
import { PreconditionError, type Store } from '../store/store.ts';

/** Undefined where none is saved, or one that is not this cluster's. */
export async function readTopicArn(store: Store, clusterId: string): Promise<string | undefined> {
  const stored = await store.get(clusterKey(clusterId));
  const arn = stored && readArn(stored.text);
  return isTopicArn(arn, clusterId) ? arn : undefined;
}

function readArn(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value['snsTopicArn'] : undefined;
  } catch {
    // Saving tells what is wrong with it.
    return undefined;
  }
}

const maxTries = 3;

/** Throws StepError when others keep being quicker, InputError for a file that is none, and what the store throws. */
export async function saveTopicArn(
  store: Store,
  cluster: { clusterId: string; region: string },
  { arn, now }: { arn: string; now: Date },
): Promise<void> {
  const { clusterId, region } = cluster;
  const key = clusterKey(clusterId);
  for (let attempt = 1; attempt <= maxTries; attempt++) {
    const stored = await store.get(key);
    const text =
      stored === undefined
        ? renderDocument(
            describeCluster({
              ...{ clusterId, region, snsTopicArn: arn },
              ...{ createdAt: now.toISOString(), createdBy: 'reeve deploy' },
            }),
          )
        : replaceTopicArn(stored.text, arn);
    if (text === stored?.text) return;
    try {
      await store.put(key, text, stored === undefined ? { ifAbsent: true } : { ifMatch: stored.etag });
      return;
    } catch (error) {
      if (!(error instanceof PreconditionError)) throw error;
    }
  }
  throw new StepError(`cannot write "${key}": it was changed by others ${maxTries} times in a row`);
}
