// What each role has to be allowed, and no more: for every key and call of its commands one statement, with the reason.
import {
  clusterKey,
  deploysPrefix,
  desiredKey,
  edgeKey,
  nodeKey,
  nodePrefix,
  nodesPrefix,
  reeveKey,
  removalsKey,
  statusKey,
  upstreamKey,
  upstreamPrefix,
} from '../cluster/keys.ts';
import { queueName, queuePrefix, topicName } from '../cluster/notification.ts';
import { bucketArn, objectArn, type PolicyPlace, resourceArn } from './place.ts';
import type { Statement } from './policy.ts';

export type PolicyRole = 'app' | 'edge' | 'deploy';

export function planStatements(role: PolicyRole, place: PolicyPlace): Statement[] {
  switch (role) {
    case 'app':
      return [...planApp(place), ...planNode(place, 'app')];
    case 'edge':
      return [...planEdge(place), ...planNode(place, 'edge')];
    case 'deploy':
      return planDeploy(place);
  }
}

type Part = Omit<Statement, 'since'>;

const asBefore = (part: Part): Statement => ({ ...part, since: 'launch-pad' });
const added = (part: Part): Statement => ({ ...part, since: 'reeve' });

function planApp(place: PolicyPlace): Statement[] {
  const { clusterId, nodeId, uses } = place;
  const shards = anyNode((edge) => upstreamKey(clusterId, edge, nodeId));
  const reports = anyNode((edge) => reeveKey(clusterId, edge));
  return [
    asBefore({
      sid: 'AppReadDesired',
      ...read(place, desiredKey(clusterId, nodeId)),
      why: 'what this node is to run',
    }),
    asBefore({ sid: 'AppWriteShards', ...write(place, shards), why: 'its routing, for the edges' }),
    asBefore({
      sid: 'AppListOwn',
      ...list(place, `${nodePrefix(clusterId, nodeId)}*`),
      why: 'earlier deploys; and that something is not there, which S3 tells only to those who may list',
    }),
    added({
      sid: 'AppReadOwn',
      ...read(
        place,
        removalsKey(clusterId, nodeId),
        `${deploysPrefix(clusterId, nodeId)}*`,
        nodeKey(clusterId, nodeId),
      ),
      why: 'removals that a deploy has announced; images that a rollback would need; its entry, for doctor',
    }),
    added({
      sid: 'AppReadEdges',
      ...read(place, reports, shards),
      why: 'a drain ends when the edge reports it; routes of a service that cannot be read are kept',
    }),
    added({ sid: 'AppListEdges', ...list(place, reports, shards), why: 'that these are not there' }),
    ...(uses.secrets === 'ssm' ? [planSecrets(place)] : []),
    ...planImages(place),
    ...planBackups(place),
    ...(uses.logs === 'cloudwatch' ? [planLogs(place, 'App', ['*'])] : []),
  ];
}

function planSecrets(place: PolicyPlace): Statement {
  return asBefore({
    sid: 'AppReadSecrets',
    actions: ['ssm:GetParameters'],
    resources: [resourceArn(place, 'ssm', `parameter/launch-pad/${place.clusterId}/*`)],
    why: 'secrets of services; a key of your own needs kms:Decrypt beside it',
  });
}

function planImages(place: PolicyPlace): Statement[] {
  return [
    asBefore({
      sid: 'AppLogInToRegistries',
      actions: ['ecr:GetAuthorizationToken'],
      resources: ['*'],
      why: 'tokens for private registries; AWS knows no smaller resource for it',
    }),
    asBefore({
      sid: 'AppPullImages',
      actions: ['ecr:BatchCheckLayerAvailability', 'ecr:BatchGetImage', 'ecr:GetDownloadUrlForLayer'],
      resources: [resourceArn(place, 'ecr', 'repository/*')],
      why: 'images, pulled by the engine with such a token',
    }),
  ];
}

function planBackups(place: PolicyPlace): Statement[] {
  const { backupsBucket, clusterId } = place;
  if (backupsBucket === undefined) return [];
  const bucket = bucketArn(place, backupsBucket);
  const below = `${clusterId}/*`;
  return [
    asBefore({
      sid: 'AppKeepBackups',
      actions: ['s3:PutObject', 's3:DeleteObject'],
      resources: [`${bucket}/${below}`],
      why: 'dumps of databases, and their end',
    }),
    asBefore({
      sid: 'AppListBackups',
      actions: ['s3:ListBucket'],
      resources: [bucket],
      prefixes: [below],
      why: 'which dumps there are',
    }),
    added({
      sid: 'AppEndUploads',
      actions: ['s3:AbortMultipartUpload'],
      resources: [`${bucket}/${below}`],
      why: 'parts of a dump that broke off',
    }),
  ];
}

function planEdge(place: PolicyPlace): Statement[] {
  const { clusterId, nodeId, uses } = place;
  const upstream = `${upstreamPrefix(clusterId, nodeId)}*`;
  return [
    asBefore({
      sid: 'EdgeReadShards',
      ...read(place, upstream),
      why: 'the routing that nodes have published',
    }),
    asBefore({ sid: 'EdgeListShards', ...list(place, upstream), why: 'which nodes have' }),
    ...(uses.balancer === 'haproxy' ? [] : [planFollowing(place)]),
    ...(uses.logs === 'cloudwatch'
      ? [planLogs(place, 'Edge', [`system/${nodeId}`, `system/${nodeId}:*`])]
      : []),
  ];
}

function planFollowing(place: PolicyPlace): Statement {
  return added({
    sid: 'EdgeReadDraining',
    ...read(
      place,
      anyNode((node) => reeveKey(place.clusterId, node)),
    ),
    why: 'where Caddy balances: which backend leaves on purpose, and may go at once',
  });
}

/** What both kinds of node do. */
function planNode(place: PolicyPlace, role: 'app' | 'edge'): Statement[] {
  const { clusterId, nodeId, uses } = place;
  const name = role === 'app' ? 'App' : 'Edge';
  const entries = [nodeKey(clusterId, nodeId), ...(role === 'edge' ? [edgeKey(clusterId, nodeId)] : [])];
  return [
    asBefore({
      sid: `${name}WriteStatus`,
      ...write(place, statusKey(clusterId, nodeId)),
      why: 'that it is alive, and what runs',
    }),
    added({
      sid: `${name}WriteReport`,
      ...write(place, reeveKey(clusterId, nodeId)),
      why: 'how far it has come with a deploy and with its routing',
    }),
    added({ sid: `${name}Join`, ...write(place, ...entries), why: 'its own entry, by reeve init' }),
    ...(uses.notify === 'sns' ? [planListening(place, name)] : []),
  ];
}

function planListening(place: PolicyPlace, name: string): Statement {
  return asBefore({
    sid: `${name}Listen`,
    actions: ['sqs:DeleteMessage', 'sqs:GetQueueUrl', 'sqs:ReceiveMessage'],
    resources: [resourceArn(place, 'sqs', queueName(place.clusterId, place.nodeId))],
    why: 'to be woken by deploys',
  });
}

function planLogs(place: PolicyPlace, name: string, groups: readonly string[]): Statement {
  const below = `log-group:/launch-pad/${place.clusterId}/`;
  return asBefore({
    sid: `${name}ShipLogs`,
    actions: ['logs:CreateLogGroup', 'logs:CreateLogStream', 'logs:PutLogEvents', 'logs:PutRetentionPolicy'],
    resources: groups.map((group) => resourceArn(place, 'logs', `${below}${group}`)),
    why: 'log lines',
  });
}

function planDeploy(place: PolicyPlace): Statement[] {
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
        'sns:Subscribe',
      ],
      resources: [resourceArn(place, 'sns', topicName(clusterId))],
      why: 'to wake the nodes',
    }),
    asBefore({
      sid: 'DeployMakeQueues',
      actions: ['sqs:CreateQueue', 'sqs:GetQueueAttributes', 'sqs:GetQueueUrl', 'sqs:SetQueueAttributes'],
      resources: [resourceArn(place, 'sqs', `${queuePrefix(clusterId)}*`)],
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

/** A key with a star where the node's id is. */
function anyNode(keyOf: (id: string) => string): string {
  return keyOf('_any_').replace('/_any_/', '/*/');
}

function read(place: PolicyPlace, ...keys: readonly string[]): Pick<Statement, 'actions' | 'resources'> {
  return { actions: ['s3:GetObject'], resources: keys.map((key) => objectArn(place, key)) };
}

function write(place: PolicyPlace, ...keys: readonly string[]): Pick<Statement, 'actions' | 'resources'> {
  return { actions: ['s3:PutObject'], resources: keys.map((key) => objectArn(place, key)) };
}

function list(
  place: PolicyPlace,
  ...keys: readonly string[]
): Pick<Statement, 'actions' | 'resources' | 'prefixes'> {
  return {
    actions: ['s3:ListBucket'],
    resources: [bucketArn(place, place.bucket)],
    prefixes: keys.map((key) => `${place.prefix}${key}`),
  };
}
