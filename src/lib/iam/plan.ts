// What each role has to be allowed, and no more: for every key and call of its commands one statement, with the reason.
import {
  deploysPrefix,
  desiredKey,
  edgeKey,
  nodeKey,
  nodePrefix,
  reeveKey,
  removalsKey,
  statusKey,
  upstreamKey,
  upstreamPrefix,
} from '../cluster/keys.ts';
import { queueName } from '../cluster/notification.ts';
import { bucketArn, type PolicyPlace, resourceArn } from './place.ts';
import { planDeploy } from './plan-deploy.ts';
import type { Statement } from './policy.ts';
import { added, anyNode, asBefore, list, read, write } from './statements.ts';

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
  if (place.backups === undefined) return [];
  const bucket = bucketArn(place, place.backups.bucket);
  // Where `deploy` puts those of a service that names no other place.
  const below = `${place.backups.prefix}${place.clusterId}/*`;
  const objects = [`${bucket}/${below}`];
  return [
    asBefore({
      sid: 'AppKeepBackups',
      actions: ['s3:PutObject', 's3:DeleteObject'],
      resources: objects,
      why: 'dumps of databases, and their end',
    }),
    asBefore({
      sid: 'AppListBackups',
      actions: ['s3:ListBucket'],
      resources: [bucket],
      where: { 's3:prefix': [below] },
      why: 'which dumps there are',
    }),
    added({
      sid: 'AppReadBackups',
      actions: ['s3:GetObject'],
      resources: objects,
      why: 'that a dump has come whole, and what its set says of it',
    }),
    added({
      sid: 'AppEndUploads',
      actions: ['s3:AbortMultipartUpload'],
      resources: objects,
      why: 'parts of a dump that broke off',
    }),
    added({
      sid: 'AppFindUploads',
      actions: ['s3:ListBucketMultipartUploads'],
      resources: [bucket],
      why: 'which dumps broke off long ago; AWS knows no prefix for it, and nothing but names is told',
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
