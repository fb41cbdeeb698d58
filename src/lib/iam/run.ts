// `reeve node iam`: the policy of a role as the configuration needs it. Asks nobody anything.
import { parseStateBucket } from '../cluster/state-bucket.ts';
import type { ClusterConfig } from '../config/config.ts';
import { requireCluster } from '../config/rules.ts';
import type { Context } from '../context.ts';
import { ConfigError, UsageError } from '../errors.ts';
import { nodeIdPattern } from '../ids.ts';
import type { Outcome } from '../outcome.ts';
import { parseBucketUrl } from '../store/bucket-url.ts';
import { type PolicyPlace, partitionOf } from './place.ts';
import { type PolicyRole, planStatements } from './plan.ts';
import { renderPolicy } from './policy.ts';

export type IamRequest = { roles?: string; nodeId?: string; account?: string };

const allRoles = ['app', 'edge', 'deploy'] as const;

export function describePolicy({ config }: Context, request: IamRequest): Outcome {
  const cluster = requireCluster(config);
  const roles = request.roles === undefined ? cluster.roles : parseRoles(request.roles);
  if (roles.length === 0)
    throw new UsageError('cannot tell the role: this machine is no node, so name one with --role');
  const base = describePlace(cluster, request);
  const statements = roles.flatMap((role: PolicyRole) =>
    planStatements(role, { ...base, nodeId: findNodeId(cluster, role, request.nodeId) }),
  );
  const policy = renderPolicy(statements);
  return {
    outcome: 'done',
    text: JSON.stringify(policy, null, 2).split('\n'),
    data: { roles, policy, reasons: statements.map(({ sid, since, why }) => ({ sid, since, why })) },
  };
}

function parseRoles(text: string): readonly PolicyRole[] {
  const names = [...new Set(text.split(',').map((name) => name.trim()))];
  const roles = allRoles.filter((role) => names.includes(role));
  if (roles.length === names.length) return roles;
  throw new UsageError(`cannot use --role ${JSON.stringify(text)}: it is app, edge, app,edge or deploy`);
}

/** On one box the edge has an id of its own. */
function findNodeId(cluster: ClusterConfig, role: PolicyRole, given: string | undefined): string {
  if (given !== undefined && !nodeIdPattern.test(given)) {
    throw new UsageError(`cannot use --node ${JSON.stringify(given)}: it is no id`);
  }
  if (role === 'deploy') return '';
  const own = role === 'edge' ? (cluster.edgeId ?? cluster.nodeId) : cluster.nodeId;
  const id = given ?? own;
  if (id === undefined)
    throw new UsageError('cannot tell the node: this machine is none, so name one with --node');
  return id;
}

function describePlace(cluster: ClusterConfig, { account }: IamRequest): Omit<PolicyPlace, 'nodeId'> {
  const { region, clusterId, secrets, notify, logs, balancer } = cluster;
  if (!cluster.store.startsWith('s3://')) {
    throw new ConfigError(`cannot write a policy: cluster.store is ${cluster.store}, which is not in S3`);
  }
  if (region === 'local') throw new ConfigError('cannot write a policy: cluster.region is missing');
  const { bucket, prefix } = describeBucket(cluster.store);
  return {
    ...{ partition: partitionOf(region), region, clusterId, bucket, prefix },
    account: findAccount(bucket, account),
    backups: cluster.backups.startsWith('s3://') ? describeBucket(cluster.backups) : undefined,
    uses: { secrets, notify, logs, balancer },
  };
}

function describeBucket(url: string): { bucket: string; prefix: string } {
  const { bucket, prefix } = parseBucketUrl(url);
  return { bucket, prefix: prefix === '' ? '' : `${prefix}/` };
}

/** launch-pad's buckets have it in their name. */
function findAccount(bucket: string, given: string | undefined): string {
  const account = given ?? parseStateBucket(bucket)?.account;
  if (account === undefined) {
    throw new UsageError('cannot tell the account: name it with --account, twelve digits');
  }
  if (!/^\d{12}$/.test(account)) {
    throw new UsageError(`cannot use --account ${JSON.stringify(account)}: an account is twelve digits`);
  }
  return account;
}
