// What whoever deploys has to be allowed: the documents of all nodes, and what wakes them.
import {
  clusterKey,
  deploysPrefix,
  desiredKey,
  nodeKey,
  nodesPrefix,
  reeveKey,
  removalsKey,
  statusKey,
} from '../cluster/keys.ts';
import { queuePrefix, topicName } from '../cluster/notification.ts';
import { objectArn, type PolicyPlace, resourceArn } from './place.ts';
import type { Statement } from './policy.ts';
import { added, anyNode, asBefore, list, read, write } from './statements.ts';

export function planDeploy(place: PolicyPlace): Statement[] {
  const { clusterId, uses } = place;
  const deploys = anyNode((node) => `${deploysPrefix(clusterId, node)}*`);
  const written = [
    anyNode((node) => desiredKey(clusterId, node)),
    anyNode((node) => removalsKey(clusterId, node)),
    deploys,
  ];
  const reported = [nodeKey, statusKey, reeveKey].map((keyOf) => anyNode((node) => keyOf(clusterId, node)));
  return [
    asBefore({
      sid: 'DeployListNodes',
      ...list(place, `${nodesPrefix(clusterId)}*`, clusterKey(clusterId)),
      why: 'which nodes there are, and that something is not there',
    }),
    asBefore({
      sid: 'DeployReadNodes',
      ...read(place, ...written, ...reported),
      why: 'what they are to run and what they report',
    }),
    asBefore({
      sid: 'DeployWriteDesired',
      ...write(place, ...written),
      why: 'what they are to run from now on',
    }),
    added({
      sid: 'DeployForget',
      actions: ['s3:DeleteObject'],
      resources: [objectArn(place, deploys)],
      why: 'all but the last five earlier deploys',
    }),
    asBefore({
      sid: 'DeployReadCluster',
      ...read(place, clusterKey(clusterId)),
      why: "the cluster's own settings",
    }),
    ...(uses.notify === 'sns' ? planNotifying(place) : []),
  ];
}

function planNotifying(place: PolicyPlace): Statement[] {
  const { clusterId } = place;
  const topic = resourceArn(place, 'sns', topicName(clusterId));
  const queues = resourceArn(place, 'sqs', `${queuePrefix(clusterId)}*`);
  return [
    asBefore({
      sid: 'DeployWriteCluster',
      ...write(place, clusterKey(clusterId)),
      why: "the topic's name, once",
    }),
    asBefore({
      sid: 'DeployNotify',
      actions: [
        'sns:CreateTopic',
        'sns:GetTopicAttributes',
        'sns:ListSubscriptionsByTopic',
        'sns:Publish',
        'sns:SetTopicAttributes',
      ],
      resources: [topic],
      why: 'to wake the nodes',
    }),
    asBefore({
      sid: 'DeploySubscribe',
      actions: ['sns:Subscribe'],
      resources: [topic],
      where: { 'sns:Protocol': ['sqs'], 'sns:Endpoint': [queues] },
      why: 'a queue to the topic, and nobody else',
    }),
    asBefore({
      sid: 'DeployMakeQueues',
      actions: ['sqs:CreateQueue', 'sqs:GetQueueAttributes', 'sqs:GetQueueUrl', 'sqs:SetQueueAttributes'],
      resources: [queues],
      why: 'a queue for each node',
    }),
    added({
      sid: 'DeployListQueues',
      actions: ['sqs:ListQueues'],
      resources: ['*'],
      why: 'which of them are there; AWS knows no smaller resource for it',
    }),
  ];
}
