import { describe, expect, it } from 'vitest';
import { type PolicyPlace, partitionOf } from '../../../src/lib/iam/place.ts';
import { type PolicyRole, planStatements } from '../../../src/lib/iam/plan.ts';
import { renderPolicy } from '../../../src/lib/iam/policy.ts';
import { type Asked, createJudge } from '../../support/identity-policy.ts';

const place: PolicyPlace = {
  ...{ partition: 'aws', account: '123456789012', region: 'eu-west-1', clusterId: 'prod' },
  ...{
    bucket: 'launch-pad-state-123456789012-eu-west-1',
    prefix: '',
    backups: { bucket: 'dumps', prefix: 'nightly/' },
    nodeId: 'web-1',
  },
  uses: { secrets: 'ssm', notify: 'sns', logs: 'cloudwatch', balancer: 'auto' },
};
const judge = (role: PolicyRole, more: Partial<PolicyPlace> = {}) =>
  createJudge(renderPolicy(planStatements(role, { ...place, ...more })));

const bucket = `arn:aws:s3:::${place.bucket}`;
const nodes = 'clusters/prod/nodes';
const object = (action: string, key: string): Asked => ({
  action: `s3:${action}`,
  resource: `${bucket}/${key}`,
});
const get = (key: string): Asked => object('GetObject', key);
const put = (key: string): Asked => object('PutObject', key);
const list = (prefix?: string): Asked => ({
  action: 's3:ListBucket',
  resource: bucket,
  ...(prefix === undefined ? {} : { keys: { 's3:prefix': prefix } }),
});
const at = (service: string, action: string, resource: string): Asked => ({
  action: `${service}:${action}`,
  resource: `arn:aws:${service}:eu-west-1:123456789012:${resource}`,
});
const dumps = 'arn:aws:s3:::dumps';
const dump = 'prod/blog/db/app/2026-06-04T03-00-00Z.sql.gz';
const dumped = (action: string, key: string): Asked => ({
  action: `s3:${action}`,
  resource: `${dumps}/${key}`,
});
const subscribe = (protocol: string, endpoint: string): Asked => ({
  ...at('sns', 'Subscribe', 'launch-pad-prod'),
  keys: { 'sns:Protocol': protocol, 'sns:Endpoint': endpoint },
});
const queue = (node: string, action: string): Asked => at('sqs', action, `launch-pad-prod-${node}`);
const listening = ['GetQueueUrl', 'ReceiveMessage', 'DeleteMessage'];
const shipping = ['CreateLogGroup', 'CreateLogStream', 'PutLogEvents', 'PutRetentionPolicy'];

/** launch-pad's own list of what its agents may do. */
const before: Record<'app' | 'edge', Asked[]> = {
  app: [
    get(`${nodes}/web-1/desired.json`),
    put(`${nodes}/web-1/status.json`),
    put(`${nodes}/edge-1/upstream/web-1.json`),
    list(`${nodes}/web-1/`),
    ...listening.map((action) => queue('web-1', action)),
    ...shipping.map((action) => at('logs', action, 'log-group:/launch-pad/prod/blog/web:log-stream:web-1/0')),
    { action: 'ecr:GetAuthorizationToken', resource: '*' },
    at('ecr', 'BatchGetImage', 'repository/team/app'),
    at('ecr', 'GetDownloadUrlForLayer', 'repository/team/app'),
    at('ssm', 'GetParameters', 'parameter/launch-pad/prod/blog/web/DATABASE_URL'),
    dumped('PutObject', `nightly/${dump}`),
    dumped('DeleteObject', `nightly/${dump}`),
    { action: 's3:ListBucket', resource: dumps, keys: { 's3:prefix': 'nightly/prod/blog/db/' } },
  ],
  edge: [
    get(`${nodes}/web-1/upstream/app-1.json`),
    list(`${nodes}/web-1/upstream/`),
    put(`${nodes}/web-1/status.json`),
    ...listening.map((action) => queue('web-1', action)),
    ...shipping.map((action) => at('logs', action, 'log-group:/launch-pad/prod/system/web-1')),
    at('logs', 'PutLogEvents', 'log-group:/launch-pad/prod/system/web-1:log-stream:caddy'),
  ],
};

/** What nobody but its owner has a business with. */
const never: Record<PolicyRole, Asked[]> = {
  app: [
    put(`${nodes}/web-1/desired.json`),
    put(`${nodes}/web-1/removals.json`),
    get(`${nodes}/web-2/desired.json`),
    put(`${nodes}/web-2/status.json`),
    put(`${nodes}/web-2/reeve.json`),
    put(`${nodes}/edge-1/upstream/web-2.json`),
    get(`${nodes}/edge-1/upstream/web-2.json`),
    put('nodes/web-1/status.json'),
    put('clusters/prod/cluster.json'),
    object('DeleteObject', `${nodes}/web-1/status.json`),
    list(),
    list(''),
    list(`${nodes}/`),
    list(`${nodes}/web-10/`),
    queue('web-10', 'ReceiveMessage'),
    queue('web-1', 'CreateQueue'),
    queue('web-1', 'SendMessage'),
    at('sns', 'Publish', 'launch-pad-prod'),
    at('sns', 'Subscribe', 'launch-pad-prod'),
    at('ssm', 'GetParameters', 'parameter/launch-pad/other/blog/web/KEY'),
    at('ssm', 'GetParameters', 'parameter/launch-pad/prod2/KEY'),
    at('ssm', 'PutParameter', 'parameter/launch-pad/prod/KEY'),
    at('ecr', 'PutImage', 'repository/team/app'),
    dumped('DeleteObject', 'other/x'),
    // Beside the prefix of backups.
    dumped('PutObject', dump),
    dumped('DeleteObject', 'nightly/prod2/x'),
    { action: 's3:ListBucket', resource: dumps, keys: { 's3:prefix': 'prod/blog/db/' } },
    { action: 's3:ListBucket', resource: dumps },
    // Where nothing goes up in parts.
    { action: 's3:ListBucketMultipartUploads', resource: bucket },
    object('AbortMultipartUpload', `${nodes}/web-1/status.json`),
  ],
  edge: [
    get(`${nodes}/web-1/desired.json`),
    put(`${nodes}/web-1/upstream/app-1.json`),
    get(`${nodes}/other/upstream/app-1.json`),
    list(`${nodes}/web-1/`),
    list(`${nodes}/`),
    { action: 'ecr:GetAuthorizationToken', resource: '*' },
    at('ssm', 'GetParameters', 'parameter/launch-pad/prod/blog/web/KEY'),
    at('logs', 'PutLogEvents', 'log-group:/launch-pad/prod/blog/web'),
    at('logs', 'PutLogEvents', 'log-group:/launch-pad/prod/system/web-10'),
    dumped('PutObject', `nightly/${dump}`),
    dumped('AbortMultipartUpload', `nightly/${dump}`),
    { action: 's3:ListBucketMultipartUploads', resource: dumps },
  ],
  deploy: [
    put(`${nodes}/web-1/status.json`),
    put(`${nodes}/edge-1/upstream/web-1.json`),
    put('nodes/web-1/desired.json'),
    object('DeleteObject', `${nodes}/web-1/desired.json`),
    list(''),
    queue('web-1', 'ReceiveMessage'),
    queue('web-1', 'DeleteQueue'),
    at('sns', 'DeleteTopic', 'launch-pad-prod'),
    at('sns', 'Subscribe', 'launch-pad-prod'),
    subscribe('https', 'https://example.com/hook'),
    subscribe('email', 'somebody@example.com'),
    subscribe('sqs', 'arn:aws:sqs:eu-west-1:999999999999:launch-pad-prod-web-1'),
    subscribe('sqs', 'arn:aws:sqs:eu-west-1:123456789012:launch-pad-production-web-1'),
    subscribe('lambda', 'arn:aws:sqs:eu-west-1:123456789012:launch-pad-prod-web-1'),
    { action: 's3:ListBucketMultipartUploads', resource: dumps },
    at('sns', 'Publish', 'launch-pad-production'),
    at('sqs', 'CreateQueue', 'launch-pad-production-web-1'),
    at('ssm', 'GetParameters', 'parameter/launch-pad/prod/blog/web/KEY'),
  ],
};

describe('the policy of a role', () => {
  it.each(['app', 'edge'] as const)('%s allows all that launch-pad’s agent was allowed', (role) => {
    const { allows } = judge(role);
    expect(before[role].filter((asked) => !allows(asked))).toEqual([]);
  });

  it.each(['app', 'edge', 'deploy'] as const)('%s allows nothing that is another’s', (role) => {
    const { allowedBy } = judge(role);
    expect(never[role].flatMap((asked) => (allowedBy(asked) ? [asked] : []))).toEqual([]);
  });

  it.each(['app', 'edge', 'deploy'] as const)(
    '%s says of each statement why, under a name of its own',
    (role) => {
      const statements = planStatements(role, place);
      expect(new Set(statements.map(({ sid }) => sid)).size).toBe(statements.length);
      expect(statements.filter(({ why }) => why.length < 5)).toEqual([]);
    },
  );

  it.each(['app', 'edge'] as const)(
    '%s: what reeve adds to launch-pad’s is marked, and none of it is in that list',
    (role) => {
      const statements = planStatements(role, place);
      const own = createJudge(renderPolicy(statements.filter(({ since }) => since === 'launch-pad')));
      expect(before[role].filter((asked) => !own.allows(asked))).toEqual([]);
      const added = statements.filter(({ since }) => since === 'reeve');
      expect(added.flatMap(({ actions }) => actions).every((action) => action.startsWith('s3:'))).toBe(true);
      expect(added.length).toBeGreaterThan(2);
    },
  );

  it('lets a node write dumps in parts and end what broke off, where its backups are and nowhere else', () => {
    const { allows } = judge('app');
    const actions = ['PutObject', 'GetObject', 'AbortMultipartUpload', 'DeleteObject'];
    expect(actions.filter((action) => !allows(dumped(action, `nightly/${dump}`)))).toEqual([]);
    expect(allows({ action: 's3:ListBucketMultipartUploads', resource: dumps })).toBe(true);
  });

  it('lets a deploy subscribe queues of its cluster to the topic', () => {
    const { allows } = judge('deploy');
    expect(allows(subscribe('sqs', 'arn:aws:sqs:eu-west-1:123456789012:launch-pad-prod-web-1'))).toBe(true);
  });

  it('has nothing for what the configuration does not use', () => {
    const uses = {
      secrets: 'file:///etc/reeve/secrets',
      notify: 'none',
      logs: 'file:///l',
      balancer: 'haproxy',
    } as const;
    const services = (role: PolicyRole): string[] => {
      const statements = planStatements(role, { ...place, uses, backups: undefined });
      return [
        ...new Set(statements.flatMap(({ actions }) => actions.map((action) => action.split(':')[0] ?? ''))),
      ];
    };
    expect([services('app'), services('edge'), services('deploy')]).toEqual([['s3', 'ecr'], ['s3'], ['s3']]);
    const edge = judge('edge', { uses });
    expect(edge.allows(get(`${nodes}/app-1/reeve.json`))).toBe(false);
  });

  it('keeps to the prefix of the store, and to the partition of the region', () => {
    const region = 'cn-north-1';
    const more = { prefix: 'fleet/', region, partition: partitionOf(region), clusterId: 'default' };
    const { allows } = judge('app', more);
    const resource = 'arn:aws-cn:s3:::launch-pad-state-123456789012-eu-west-1';
    expect(allows({ action: 's3:GetObject', resource: `${resource}/fleet/nodes/web-1/desired.json` })).toBe(
      true,
    );
    expect(allows({ action: 's3:GetObject', resource: `${resource}/nodes/web-1/desired.json` })).toBe(false);
    expect(allows({ action: 's3:ListBucket', resource, keys: { 's3:prefix': 'fleet/nodes/web-1/' } })).toBe(
      true,
    );
    expect(allows({ action: 's3:ListBucket', resource, keys: { 's3:prefix': 'nodes/web-1/' } })).toBe(false);
    const arn = 'arn:aws-cn:sqs:cn-north-1:123456789012:launch-pad-default-web-1';
    expect(allows({ action: 'sqs:ReceiveMessage', resource: arn })).toBe(true);
  });

  it.each([
    ['eu-central-1', 'aws'],
    ['us-east-1', 'aws'],
    ['cn-north-1', 'aws-cn'],
    ['us-gov-west-1', 'aws-us-gov'],
    ['eusc-de-east-1', 'aws-eusc'],
    ['us-iso-east-1', 'aws-iso'],
    ['us-isob-east-1', 'aws-iso-b'],
    ['eu-isoe-west-1', 'aws-iso-e'],
    ['us-isof-south-1', 'aws-iso-f'],
  ])('knows the partition of %s', (region, partition) => {
    expect(partitionOf(region)).toBe(partition);
  });

  it.each(['app', 'edge', 'deploy'] as const)('%s fits into a role', (role) => {
    const longest = {
      ...place,
      clusterId: 'c'.repeat(32),
      nodeId: 'n'.repeat(32),
      prefix: `${'p'.repeat(40)}/`,
    };
    const text = JSON.stringify(renderPolicy(planStatements(role, longest)));
    // What AWS takes of all inline policies of one role.
    expect(text.length).toBeLessThan(10_240);
  });
});
